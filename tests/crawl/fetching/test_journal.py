import struct
import zlib
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.errors import LakeError
from crawl.fetching import journal
from crawl.records import Fetch, Skip

AT = datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC)


def fetch(**changes: object) -> Fetch:
    values: dict[str, object] = {
        "kind": "page",
        "url": "http://a.test/é",
        "url_key": -(2**63),
        "origin": "http://a.test",
        "host": "a.test",
        "domain": "a.test",
        "attempt": 1,
        "chain_id": 2**63 - 1,
        "hop": 0,
        "started_at": AT,
        "finished_at": AT + timedelta(microseconds=1),
        "required_gap_ms": 0.1,
        "gap_rule": "floor",
        "total_ms": 1 / 3,
        "outcome": "OK",
        "policy_version": "p",
        "status": 200,
        "conn_reused": False,
        "response_headers": "A: \xff\nB: 2",
    }
    return Fetch(**{**values, **changes})  # type: ignore[arg-type]


def skip() -> Skip:
    return Skip(
        url_key=1,
        url="http://a.test/",
        host="a.test",
        depth=3,
        outcome="ROBOTS_DENIED",
        reason="r",
        decided_at=AT,
    )


def encode(record: Fetch | Skip, body: bytes | None) -> bytes:
    return b"".join(journal.frame(record, body))


@given(st.lists(st.binary(max_size=40), max_size=150))
def test_a_body_in_pieces_makes_the_frame_of_the_whole(pieces: list[bytes]) -> None:
    framed = journal.frame(fetch(), tuple(pieces))
    assert b"".join(framed) == encode(fetch(), b"".join(pieces))
    assert len(framed) <= 65  # one write takes no more than 1,024 at once, of many frames


def test_records_and_bodies_come_back_as_they_were() -> None:
    given_frames = [
        (fetch(), b"<html>" * 1000),
        (skip(), None),
        (fetch(status=None, url_key=5), None),
        (fetch(), b""),
    ]
    data = b"".join(encode(record, body) for record, body in given_frames)
    read = list(journal.decode(data))
    assert [record for record, _, _ in read] == [record for record, _ in given_frames]
    bodies = [None if body is None else body.raw() for _, body, _ in read]
    assert bodies == [body for _, body in given_frames]
    assert journal.valid_length(data) == len(data)


def test_a_frame_is_found_again_by_its_offset() -> None:
    data = encode(skip(), None) + encode(fetch(), b"body")
    (_, _, first), (record, body, second) = journal.decode(data)
    assert (first, journal.frame_at(data, second)) == (0, (record, body))
    with pytest.raises(ValueError, match="no whole frame at offset 3"):
        journal.frame_at(data, 3)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_a_journal_cut_anywhere_gives_every_whole_frame_and_nothing_else(cut: int) -> None:
    frames = [encode(fetch(url_key=i), b"x" * i * 10) for i in range(8)]
    data = b"".join(frames)
    cut %= len(data) + 1
    whole, length = 0, 0
    for frame in frames:
        if length + len(frame) > cut:
            break
        whole, length = whole + 1, length + len(frame)
    assert [record.url_key for record, _, _ in journal.decode(data[:cut])] == list(range(whole))
    assert journal.valid_length(data[:cut]) == length


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_flipped_bit_ends_the_journal_before_its_frame(data: st.DataObject) -> None:
    frames = [encode(fetch(url_key=i), b"body") for i in range(3)]
    journalled = bytearray(b"".join(frames))
    at = data.draw(st.integers(0, len(journalled) - 1))
    journalled[at] ^= 1 << data.draw(st.integers(0, 7))
    starts = [sum(len(f) for f in frames[:i]) for i in range(4)]
    hit = next(i for i in range(3) if starts[i] <= at < starts[i + 1])
    assert journal.valid_length(bytes(journalled)) == starts[hit]


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_raise(data: bytes) -> None:
    assert journal.valid_length(data) <= len(data)
    assert list(journal.decode(bytes(64) + data)) == []


def test_a_tail_of_zeros_is_no_frame() -> None:
    frame = encode(skip(), None)
    assert journal.valid_length(frame + bytes(4096)) == len(frame)


def test_the_same_record_makes_the_same_bytes() -> None:
    assert encode(fetch(), b"body") == encode(fetch(), b"body")


def test_a_reader_hashes_what_the_writer_did_not() -> None:
    data = encode(fetch(), b"hello") + encode(fetch(body_hash="h"), b"x") + encode(fetch(), None)
    hashes = [
        record.body_hash for record, _, _ in journal.decode(data, digest=True) if isinstance(record, Fetch)
    ]
    assert hashes == [sha256(b"hello").hexdigest(), "h", None]
    assert [r.body_hash for r, _, _ in journal.decode(data) if isinstance(r, Fetch)] == [None, "h", None]


def test_a_compact_frame_says_the_same_in_fewer_bytes() -> None:
    body = b"<html>" * 1000
    small = journal.compact(fetch(), body)
    assert len(small) < len(body) / 5
    ((record, kept, _),) = journal.decode(small, digest=True)
    ((other, plain, _),) = journal.decode(encode(fetch(), body), digest=True)
    assert record == other
    assert kept is not None
    assert plain is not None
    assert kept.raw() == plain.raw() == body
    assert kept.packed() == plain.packed()


def test_a_compact_frame_leaves_out_the_body_that_its_page_had_before() -> None:
    known = sha256(b"hello").hexdigest()
    ((record, body, _),) = journal.decode(journal.compact(fetch(known_hash=known), b"hello"))
    assert isinstance(record, Fetch)
    assert (record.body_hash, body) == (known, None)


def test_a_journal_of_the_first_version_is_refused_and_not_taken_for_a_damaged_one() -> None:
    payload = struct.pack("<I", 3) + b"abc"
    first = struct.pack("<II", len(payload), zlib.crc32(payload)) + payload
    for read in (lambda data: list(journal.decode(data)), journal.valid_length):
        with pytest.raises(LakeError, match="end the round with the version that began it"):
            read(first)
        read(first[:-1])  # not whole: nothing is lost


@pytest.mark.skipif(journal.__file__.endswith(".so"), reason="compiled, a module's constants are fixed")
def test_a_frame_with_other_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(skip(), None)
    monkeypatch.setattr(journal, "_LAYOUT", 1)
    with pytest.raises(LakeError, match="another version of this software"):
        list(journal.decode(data))
