import gzip
import json
import zlib
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.net import content
from crawl.net.content import Decoder

TEXT = b"<p>a page of some length</p>" * 400
LIMIT = 1_000_000


def _raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


def _zstd_stream(data: bytes) -> bytes:
    coder = zstandard.ZstdCompressor().compressobj()  # a frame that does not tell its size
    return coder.compress(data) + coder.flush()


CODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": _zstd_stream,
}


def decode(coding: str | None, data: bytes, piece: int = 7, limit: int = LIMIT) -> tuple[bytes, str | None]:
    decoder = Decoder(coding, limit)
    out = b"".join(decoder.feed(data[i : i + piece]) for i in range(0, len(data), piece))
    decoder.finish()
    assert decoder.length == len(out) <= limit
    return out, decoder.fault


@pytest.mark.parametrize("coding", [*CODERS, "GZip", " Br "])
@pytest.mark.parametrize("piece", [1, 1000, 10**9])
def test_every_coding_we_ask_for_is_undone_whatever_the_pieces(coding: str, piece: int) -> None:
    coded = CODERS[coding.strip().lower()](TEXT)
    assert decode(coding, coded, piece=piece) == (TEXT, None)


def test_raw_deflate_is_undone_too() -> None:
    assert decode("deflate", _raw_deflate(TEXT)) == (TEXT, None)


@pytest.mark.parametrize("value", [None, "", "identity", "utf-8", "none", "identity, identity"])
def test_what_is_no_coding_leaves_the_body_alone(value: str | None) -> None:
    assert decode(value, TEXT) == (TEXT, None)


def test_codings_are_undone_in_reverse_order() -> None:
    assert decode("br, gzip", gzip.compress(brotli.compress(TEXT))) == (TEXT, None)


def test_all_members_of_a_gzip_body_belong_to_it_and_padding_does_not() -> None:
    two = gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:])
    assert decode("gzip", two) == (TEXT, None)
    assert decode("gzip", two, piece=10**9) == (TEXT, None)
    assert decode("gzip", two + bytes(100)) == (TEXT, None)
    assert decode("deflate", zlib.compress(TEXT) + b"more") == (TEXT, None)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_piece_may_end_where_a_member_ends(coding: str) -> None:
    """As it does where a server codes and sends each part of a page by itself."""
    parts = [CODERS[coding](TEXT[at : at + 2000]) for at in range(0, len(TEXT), 2000)]
    for cut in (0, 1, 2):
        decoder = Decoder(coding, LIMIT)
        body, out = b"".join(parts), []
        ends = [sum(map(len, parts[:n])) + cut for n in range(1, len(parts))]
        for start, end in zip([0, *ends], [*ends, len(body)], strict=True):
            out.append(decoder.feed(body[start:end]))
        decoder.finish()
        assert (b"".join(out), decoder.fault) == (TEXT, None)


@pytest.mark.parametrize(
    ("coding", "empty"), [("gzip", gzip.compress(b"", mtime=0)), ("zstd", b"P*M\x18" + bytes(4))]
)
def test_members_without_end_are_refused(coding: str, empty: bytes) -> None:
    """Each may hold nothing, so no cap on bytes would end them soon."""
    assert decode(coding, empty * 9_000 + CODERS[coding](TEXT), piece=16_384) == (TEXT, None)
    assert decode(coding, empty * 20_000, piece=16_384) == (b"", content.MEMBERS)
    twice = f"{coding}, gzip"
    assert decode(twice, gzip.compress(empty * 20_000), piece=10**9) == (b"", content.MEMBERS)


def test_what_lies_between_two_codings_is_bounded_over_all_pieces() -> None:
    """Empty deflate blocks: as many as one likes, and nothing ever comes out."""
    coder = zlib.compressobj(wbits=-15)
    blocks = b"".join(coder.flush(zlib.Z_FULL_FLUSH) or b"\x00\x00\x00\xff\xff" for _ in range(100_000))
    coded = gzip.compress(blocks)
    assert decode("deflate, gzip", coded, piece=100, limit=50_000) == (b"", content.TOO_LARGE)


def test_all_frames_of_a_zstd_body_belong_to_it() -> None:
    two = _zstd_stream(TEXT[:5000]) + zstandard.compress(TEXT[5000:])
    assert decode("zstd", two) == (TEXT, None)
    assert decode("zstd", two, piece=10**9) == (TEXT, None)


@pytest.mark.parametrize("coding", CODERS)
def test_a_body_that_ends_early_keeps_what_came_and_says_so(coding: str) -> None:
    coded = CODERS[coding](TEXT)
    out, fault = decode(coding, coded[: len(coded) - 5])
    assert fault == content.TRUNCATED
    assert TEXT.startswith(out)


@pytest.mark.parametrize("coding", CODERS)
def test_an_empty_body_is_whole_under_any_coding(coding: str) -> None:
    assert decode(coding, b"") == (b"", None)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_that_is_not_coded_as_declared_is_taken_as_it_came(coding: str) -> None:
    assert decode(coding, TEXT) == (TEXT, content.PLAIN)


@pytest.mark.parametrize("coding", CODERS)
def test_damaged_data_is_told_from_truncated(coding: str) -> None:
    coded = bytearray(CODERS[coding](TEXT))
    coded[4 : len(coded) - 2] = bytes(len(coded) - 6)
    _, fault = decode(coding, bytes(coded))
    assert fault in (content.CORRUPT, content.TRUNCATED)


def test_a_wrong_checksum_is_corrupt() -> None:
    coded = bytearray(gzip.compress(TEXT))
    coded[-6] ^= 0xFF
    assert decode("gzip", bytes(coded))[1] == content.CORRUPT


@pytest.mark.parametrize("value", ["foo", "gzip, foo", "gzip,gzip,gzip,gzip,gzip", "compress"])
def test_a_coding_nobody_asked_for_gives_nothing(value: str) -> None:
    assert decode(value, TEXT) == (b"", content.UNKNOWN)


@pytest.mark.parametrize("coding", CODERS)
def test_a_bomb_stops_at_the_limit(coding: str) -> None:
    bomb = CODERS[coding](bytes(40_000_000))
    out, fault = decode(coding, bomb, piece=16_384, limit=100_000)
    assert len(out) == 100_000
    assert fault == content.TOO_LARGE


def test_exactly_the_limit_is_not_too_large() -> None:
    for coding, coder in CODERS.items():
        assert decode(coding, coder(TEXT), limit=len(TEXT)) == (TEXT, None)
        assert decode(coding, coder(TEXT), limit=len(TEXT) - 1) == (TEXT[:-1], content.TOO_LARGE)
    assert decode(None, TEXT, limit=len(TEXT) - 1) == (TEXT[:-1], content.TOO_LARGE)


def test_a_zstd_window_beyond_the_standard_is_refused() -> None:
    params = zstandard.ZstdCompressionParameters(window_log=27)
    coder = zstandard.ZstdCompressor(compression_params=params).compressobj()
    coded = coder.compress(TEXT) + coder.flush()
    assert decode("zstd", coded)[1] == content.CORRUPT


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([None, *CODERS, "gzip, br", "br, deflate"]),
    st.binary(max_size=300),
    st.integers(1, 50),
    st.booleans(),
)
def test_no_bytes_make_it_raise_or_overflow(coding: str | None, data: bytes, piece: int, head: bool) -> None:
    if head and coding in CODERS:
        data = CODERS[coding](TEXT)[:20] + data
    out, _ = decode(coding, data, piece=piece, limit=500)
    assert len(out) <= 500


def test_outside_cases_of_codings(cases: Path) -> None:
    checked = 0
    for line in (cases / "http" / "behaviours.jsonl").read_text().splitlines():
        row = json.loads(line)
        sends, expected = row["server_sends"], row["expected"]
        if "body_file" not in sends or row["area"] != "coding":
            continue
        headers = {name.lower(): value for name, value in sends["headers"].items()}
        data = (cases / "http" / sends["body_file"]).read_bytes()
        out, fault = decode(headers.get("content-encoding"), data, piece=16_384, limit=5_000_000)
        outcome = expected.get("outcome", "")
        if outcome == "fetched":
            assert fault is None, row["id"]
            if "starts_with" in expected:
                assert out.lower().startswith(expected["starts_with"].encode().lower()), row["id"]
        elif outcome in ("truncated_or_failed",):
            assert fault in (content.TRUNCATED, content.CORRUPT, content.TOO_LARGE), row["id"]
        checked += 1
    assert checked >= 20
