"""The Delta logs: open at a version, list files, commit once. The only importer of deltalake.

What always holds: a commit is decided and made on one handle (`decide` sees the handle's state, and nothing
is rebased: any rival commit in between sends us back to decide again); every commit carries a random id, so
that a conflict won by our own id is recognised as success whose answer was lost; every commit carries an app
id, so that a retried request can never land twice. Errors are LakeError (storage) or Conflict (somebody else
was first). It knows no table by name and writes no data file. Handles are never kept: one is stale after its
own commit.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from crawl.errors import Conflict, LakeError
from lake.entries import FileEntry, stats_json
from lake.store import Store, advice, s3_options

__all__ = [
    "Head",
    "Intent",
    "Listing",
    "Tagged",
    "add_columns",
    "app_version",
    "commit",
    "commit_if",
    "create",
    "exists",
    "files",
    "handle",
    "listing",
    "search",
    "tagged",
    "version",
]

#: key of the random id in a commit's metadata
_ID: Final = "crawl.commit"
#: marks a column in the table's schema that files written before it was added do not have
_ADDED: Final = "crawl.added"
#: a commit that lost this many times in a row is reported: rivals commit a few times a second at most
_TRIES: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A commit to be made."""

    apps: Mapping[str, int]  # app id -> version; never empty
    adds: Sequence[FileEntry] = ()
    removes: Sequence[FileEntry] = ()  # must be live, else Conflict
    metadata: Mapping[str, str] = field(default_factory=dict)
    rewrite: bool = False  # the same rows in other files


class Head:
    """What one handle shows, at the moment a commit is decided on it."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        #: Delta version of the handle
        self.version: int = table.version()

    def app(self, app: str) -> int:
        """Newest version an app id has committed; 0 before the first."""
        return self._table.transaction_version(app) or 0

    def live(self) -> frozenset[str]:
        """Paths of the files of this version, relative to the table's folder."""
        return frozenset(map(str, pa.table(self._table.get_add_actions(flatten=True))["path"].to_pylist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A commit found in the log."""

    version: int
    apps: Mapping[str, int]
    metadata: Mapping[str, Any]


def create(
    store: Store,
    table: str,
    schema: pa.Schema,
    *,
    partition: Sequence[str] = (),
    stats: Sequence[str] = (),
    description: str = "",
) -> None:
    """Make an empty table; one that is there stays as it is. Column comments go into the Delta schema.

    `stats`: the columns for which every file carries statistics. Logs are never cut on a schedule: what a
    kept round pins must stay readable, so upkeep alone removes old versions.
    """
    if exists(store, table):
        return
    columns = pa.schema([_commented(f) for f in schema])
    try:
        DeltaTable.create(
            store.url(table),
            schema=columns,
            mode="ignore",
            partition_by=list(partition) or None,
            name=table,
            description=description,
            configuration={
                "delta.dataSkippingStatsColumns": ",".join(stats),
                "delta.enableExpiredLogCleanup": "false",
            },
            storage_options=_options(store),
            commit_properties=CommitProperties(
                max_commit_retries=0
            ),  # a rival's table is not to be made anew
        )
    except (DeltaError, OSError) as error:
        if exists(store, table):
            return  # another creator was first, or the answer to our own creation was lost
        raise advice(store.root, f"create table {table}", error) from error


def exists(store: Store, table: str) -> bool:
    """Is there a table of this name?"""
    # deltalake's own is_deltatable waits for the server while holding the interpreter
    log = f"{table}/_delta_log"
    return store.exists(f"{log}/{0:020d}.json") or store.exists(f"{log}/_last_checkpoint")


def handle(store: Store, table: str, at: int | None = None) -> DeltaTable:
    """A fresh handle, at the newest version or at `at`. Raises LakeError."""
    try:
        return DeltaTable(store.url(table), version=at, storage_options=_options(store))
    except TableNotFoundError as error:
        raise LakeError(f"no table {table} in {store.root}: is this a lake made by `crawl init`?") from error
    except (DeltaError, OSError) as error:
        what = f"open table {table}" if at is None else f"open table {table} at version {at}"
        raise advice(store.root, what, error) from error


def version(store: Store, table: str) -> int:
    """Newest Delta version of a table."""
    return int(handle(store, table).version())


def app_version(store: Store, table: str, app: str) -> int:
    """Newest version an app id has committed to a table; 0 before the first.

    For looking only: to act on it, decide inside `commit_if`.
    """
    return Head(handle(store, table)).app(app)


def files(store: Store, table: str, version: int | None = None) -> list[FileEntry]:
    """Files of a table at a version (None: newest), sorted by path, with their statistics."""
    return listing(store, table, version).files


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table at one version."""

    files: list[FileEntry]
    began: frozenset[str]  # columns that it was made with: every file has them
    added: frozenset[str]  # columns added since: files may lack them


def listing(store: Store, table: str, version: int | None = None) -> Listing:
    """Files and columns of a table at a version (None: newest)."""
    opened = handle(store, table, version)
    fields = opened.schema().fields
    added = frozenset(field.name for field in fields if field.metadata.get(_ADDED))
    return Listing(
        files=_entries(table, opened),
        began=frozenset(field.name for field in fields) - added,
        added=added,
    )


def add_columns(store: Store, table: str, columns: Sequence[pa.Field[Any]]) -> None:
    """Add columns that the table does not have yet, null in the files there are. Raises LakeError."""
    try:
        opened = handle(store, table)
        have = {field.name for field in opened.schema().fields}
        new = [column for column in columns if column.name not in have]
        if new:
            marked = [column.with_metadata({"comment": _comment(column), _ADDED: "yes"}) for column in new]
            opened.alter.add_columns(list(Schema.from_arrow(pa.schema(marked)).fields))
    except (DeltaError, OSError) as error:
        if not _is_conflict(error):  # a rival adds the same ones
            raise advice(store.root, f"add columns to table {table}", error) from error


def _entries(table: str, opened: DeltaTable) -> list[FileEntry]:
    actions = pa.table(opened.get_add_actions(flatten=True))
    names = actions.column_names
    columns: dict[str, list[Any]] = {name: actions[name].to_pylist() for name in names}
    found = []
    for i in range(actions.num_rows):

        def part(prefix: str, i: int = i) -> dict[str, Any]:
            pairs = ((name, columns[name][i]) for name in names if name.startswith(prefix))
            return {name.removeprefix(prefix): value for name, value in pairs if value is not None}

        rows = columns["num_records"][i]
        found.append(
            FileEntry(
                table=table,
                path=columns["path"][i],
                size=columns["size_bytes"][i],
                rows=-1 if rows is None else rows,
                partition={name: str(value) for name, value in part("partition.").items()},
                stats=stats_json(
                    -1 if rows is None else rows, part("min."), part("max."), part("null_count.")
                ),
            )
        )
    return sorted(found, key=lambda entry: entry.path)


def commit_if(store: Store, table: str, decide: Callable[[Head], Intent | None]) -> int | None:
    """Decide and commit on one handle; on a conflict decide again on a fresh one.

    `decide` returns the commit to make, or None when there is nothing to do, or raises. It may be called
    several times. Returns the Delta version we committed, or None. Raises Conflict when an input of a rewrite
    is gone or rivals kept winning, LakeError when storage fails (then, and only then, it is unknown whether
    the commit landed; its app id tells whoever comes next).
    """
    for attempt in range(_TRIES):
        table_handle = handle(store, table)
        head = Head(table_handle)
        intent = decide(head)
        if intent is None:
            return None
        _check(head, table, intent)
        commit_id = secrets.token_hex(16)
        try:
            _write(table_handle, intent, commit_id)
        except (DeltaError, OSError) as error:
            landed = _landed(store, table, head.version + 1, commit_id)
            if landed is not None:
                return landed
            if not _is_conflict(error):
                raise advice(store.root, f"commit to table {table}", error) from error
            time.sleep(random.random() * min(0.5, 0.01 * (1 + attempt)))
            continue
        return head.version + 1  # nothing is rebased: a commit lands next to its handle or not at all
    raise Conflict(
        f"table {table} in {store.root} changes faster than we can commit: run again when others are done"
    )


def commit(
    store: Store,
    table: str,
    *,
    app: str,
    app_version: int | None = None,
    adds: Sequence[FileEntry] = (),
    removes: Sequence[FileEntry] = (),
    metadata: Mapping[str, str] | None = None,
    rewrite: bool = False,
) -> int:
    """Commit files under an app id, once. Returns the Delta version that holds them.

    `app_version` None takes the next one (not idempotent over calls). With a number, a table where this app
    id has already committed it, or a higher one, is left as it is and the version of that commit is returned.
    Raises Conflict when a file to remove is no longer live, LakeError.
    """

    def decide(head: Head) -> Intent | None:
        newest = head.app(app)
        if app_version is not None and newest >= app_version:
            return None
        number = newest + 1 if app_version is None else app_version
        return Intent(
            apps={app: number}, adds=adds, removes=removes, metadata=metadata or {}, rewrite=rewrite
        )

    made = commit_if(store, table, decide)
    if made is not None:
        return made
    earlier = tagged(store, table, app, app_version)
    return version(store, table) if earlier is None else earlier.version


def tagged(store: Store, table: str, app: str, app_version: int | None = None) -> Tagged | None:
    """The newest commit under an app id (with that version, if given); None if the log has none."""
    hits = search(store, table, lambda t: app in t.apps and app_version in (None, t.apps[app]))
    return next(hits, None)


def search(store: Store, table: str, wanted: Callable[[Tagged], bool]) -> Iterator[Tagged]:
    """Commits that carry app ids and are wanted, newest first, as far back as the log is kept."""
    for number in range(version(store, table), -1, -1):
        actions = _log(store, table, number)
        if actions is None:
            return  # older versions were removed by upkeep
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        apps = {a["txn"]["appId"]: int(a["txn"]["version"]) for a in actions if "txn" in a}
        found = Tagged(version=number, apps=apps, metadata=info)
        if apps and wanted(found):
            yield found


def _comment(column: pa.Field[Any]) -> str:
    return (column.metadata or {}).get(b"comment", b"").decode()


def _commented(column: pa.Field[Any]) -> pa.Field[Any]:
    comment = _comment(column)
    return column.with_metadata({"comment": comment}) if comment else column.remove_metadata()


def _options(store: Store) -> dict[str, str] | None:
    return None if store.is_local else s3_options()


def _check(head: Head, table: str, intent: Intent) -> None:
    if not intent.apps:
        raise ValueError("a commit without an app id could land twice")
    if intent.removes:
        live = head.live()
        gone = [entry.path for entry in intent.removes if entry.path not in live]
        if gone:
            raise Conflict(
                f"{table}: somebody else has rewritten {gone[0]} (and {len(gone) - 1} more): plan again"
            )


def _write(table: DeltaTable, intent: Intent, commit_id: str) -> None:
    now = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        RemoveAction(e.path, not intent.rewrite, now, e.size, dict(e.partition)) for e in intent.removes
    ]
    actions += [
        AddAction(e.path, e.size, dict(e.partition), now, not intent.rewrite, e.stats) for e in intent.adds
    ]
    table.create_write_transaction(
        actions,
        "append",
        table.schema(),
        partition_by=list(table.metadata().partition_columns) or None,
        commit_properties=CommitProperties(
            custom_metadata={**intent.metadata, _ID: commit_id},
            max_commit_retries=0,  # no rebase: what was decided holds for this very version
            app_transactions=[Transaction(app, number) for app, number in intent.apps.items()],
        ),
        post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
    )


def _is_conflict(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, CommitFailedError) or "concurrent" in text or "already exists" in text


def _landed(store: Store, table: str, first: int, commit_id: str) -> int | None:
    """The version, from `first` on, that carries our id: a conflict won by ourselves."""
    number = first
    while (actions := _log(store, table, number)) is not None:
        if any(a.get("commitInfo", {}).get(_ID) == commit_id for a in actions):
            return number
        number += 1
    return None


def _log(store: Store, table: str, number: int) -> list[dict[str, Any]] | None:
    raw = store.get(f"{table}/_delta_log/{number:020d}.json")
    return None if raw is None else [json.loads(line) for line in raw.splitlines() if line.strip()]
