"""The command line: `crawl …`, also as `dask crawl …`.

What always holds: results go to standard output, everything else to standard error; what we raise on
purpose ends in one line and its exit code (crawl.errors), a usage error in 2, an interrupt in 130, a
termination in 143, anything unexpected in its traceback and 1. Commands import what they need when they
run, so that `--help` is instant. It decides nothing: each command is told to the module named after it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NoReturn

import click

from crawl.errors import CheckFailed, UsageError
from cycles.commands.arguments import DURATION, HOST, ROUND, TIME
from cycles.commands.ending import Commands, ended
from cycles.session.interrupts import tidy

__all__ = ["command", "main"]


LAKE: Final = click.argument("root", metavar="LAKE")
NOW: Final = click.option("--now", type=TIME, help="As of this time; without it, now.")
JSON: Final = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)


@click.group("crawl", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crawl-cycles", prog_name="crawl")
def command() -> None:
    """Crawl the web in rounds, into a lake of Delta tables.

    LAKE is a folder or s3://bucket/prefix.

    Exit codes: 0 done, 1 a check failed or an unexpected error, 2 usage, 3 lake busy, 4 storage, 5 cluster,
    6 stopped for safety.
    """


def _now(given: datetime | None) -> datetime:
    from cycles.session.clock import utcnow

    return given or utcnow()


def _say(text: str) -> None:
    """A remark for the person: standard error."""
    click.echo(text, err=True)


@command.command()
@LAKE
def init(root: str) -> None:
    """Make a lake: its tables and its settings, crawl.toml."""
    from cycles.session import setup

    store = setup.init(root)
    click.echo(f"made a lake at {store.root}")
    _say(f"next: look at {store.url(setup.SETTINGS)}, then `crawl seed {root} URL…`")


@command.command()
@LAKE
@click.argument("urls", nargs=-1, metavar="[URL]…")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Text, one URL a line; or .csv or .parquet with a column `url` (kind and priority may follow).",
)
@click.option(
    "--priority",
    type=click.Choice(["critical", "high", "medium", "low"]),
    default="medium",
    show_default=True,
    help="Of seeds that name none themselves.",
)
@click.option(
    "--kind",
    type=click.Choice(["page", "sitemap", "feed"]),
    default="page",
    show_default=True,
    help="Of seeds that name none themselves: how they are read.",
)
@NOW
def seed(
    root: str, urls: tuple[str, ...], file: Path | None, priority: str, kind: str, now: datetime | None
) -> None:
    """Give URLs to start from. What is no URL in scope is told with its line and reason."""
    from cycles.commands import seeding
    from cycles.session import setup

    if not urls and file is None:
        raise click.UsageError("give URLs, or a file with --file")
    lake = setup.open_lake(root)
    given = {"priority": priority, "kind": kind}
    at = now or seeding.moment(lake, _now(now), _say)
    added = seeding.add(lake, urls, file, **given, who=setup.who(), now=at, tell=_say)
    click.echo(f"accepted {added.accepted:,}, refused {added.refused:,}")
    if not added.accepted:
        raise UsageError("no seed was accepted")


@command.command()
@LAKE
@click.option("--window", type=DURATION, help="How long the round may fetch, instead of round.window.")
@click.option("--workers", type=click.IntRange(1), help="Of our own.")
@NOW
@JSON
def plan(root: str, window: timedelta | None, workers: int | None, now: datetime | None, form: str) -> None:
    """What the next round would fetch, how long it would take and what caps it. Writes nothing."""
    from cycles.commands import planview
    from cycles.rounds.round import preview
    from cycles.settings.options import RunOptions
    from cycles.words import output

    found = preview(root, RunOptions(window=window, workers=workers, now=now))
    click.echo(output.to_json(found) if form == "json" else planview.told(found))


@command.command()
@LAKE
@click.option("--rounds", type=click.IntRange(1), help="Run this many rounds.")
@click.option("--until-idle", is_flag=True, help="Run until nothing is due and nothing waits to be merged.")
@click.option("--every", type=DURATION, help="Run again and again, this far apart.")
@click.option("--window", type=DURATION, help="How long a round may fetch, instead of round.window.")
@click.option("--now", type=TIME, help="Planning time of the rounds, for rehearsals; without it, real time.")
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, instead of workers of our own.")
@click.option("--workers", type=click.IntRange(1), help="Workers of our own; as many as cores, at most 4.")
def run(
    root: str,
    rounds: int | None,
    until_idle: bool,
    every: timedelta | None,
    window: timedelta | None,
    now: datetime | None,
    scheduler: str | None,
    workers: int | None,
) -> None:
    """Finish the open round if there is one, else run one; or more.

    However it is stopped, the next `crawl run` goes on where it stopped.
    """
    if (rounds is not None) + until_idle + (every is not None) > 1:
        raise click.UsageError("--rounds, --until-idle and --every exclude each other")
    if every is not None and now is not None:
        raise click.UsageError("--every waits for real time to pass, --now holds it: give one of them")
    if scheduler is not None and workers is not None:
        raise click.UsageError("--scheduler and --workers exclude each other")
    from cycles.rounds.round import run as run_rounds
    from cycles.settings.options import RunOptions
    from cycles.words.progress import Progress

    options = RunOptions(
        rounds=rounds,
        until_idle=until_idle,
        every=every,
        window=window,
        now=now,
        scheduler=scheduler,
        workers=workers,
    )
    progress = Progress()
    with _resumable(root):
        try:
            run_rounds(root, options, progress)
        finally:
            progress.close()


@contextmanager
def _resumable(root: str) -> Iterator[None]:
    """While a round runs, SIGTERM ends it as tidily as Ctrl-C, and who stops it is told how it goes on."""
    try:
        with tidy(_say):
            yield
    except KeyboardInterrupt:
        _say(f"stopped; nothing is lost: `crawl run {root}` goes on where this stopped")
        raise


@command.command()
@LAKE
@NOW
@JSON
def status(root: str, now: datetime | None, form: str) -> None:
    """URLs by state, what is due and when, the open round and its stage, who drives it, what waits.

    As of now, or as of the last round's planning time where that lies ahead of the clock, or as of --now.
    Keys with --format json: lake, now, round, states, urls, hosts, open_round, holder, waiting, paused,
    rounds, tables.
    """
    from cycles.commands import status as body
    from cycles.session import opening, setup
    from cycles.words import output

    lake = setup.open_lake(root)
    at, remark = (now, "") if now is not None else opening.moment(lake.store, _now(None))
    found = body.overview(lake, at)
    click.echo(output.to_json(found) if form == "json" else body.told(found, remark))


@command.command()
@LAKE
@click.argument("round_", metavar="[ROUND]", type=ROUND, required=False)
@JSON
def report(root: str, round_: int | None, form: str) -> None:
    """What a round did: funnel, outcomes, states, cuts, plan against actual.

    Without ROUND, the last one that planned something.
    """
    from cycles.commands import report as body
    from cycles.session import setup
    from cycles.words import output

    found = body.report(setup.open_lake(root), round_, _now(None))
    click.echo(output.to_json(found) if form == "json" else body.told(found))


@command.command()
@LAKE
@click.argument("url")
@NOW
@JSON
def explain(root: str, url: str, now: datetime | None, form: str) -> None:
    """A URL's story: where found, each decision and why, each request, when it is due again."""
    from cycles.commands import explain as body
    from cycles.session import setup
    from cycles.words import output, story

    found = body.explain(setup.open_lake(root), url, _now(now))
    click.echo(output.to_json(found) if form == "json" else story.told(found))


@command.command()
@LAKE
@click.argument("statement", metavar="SQL")
@click.option("--round", "round_", type=ROUND, help="The lake as this round left it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="Without it, what the ending of --output says, else a table.",
)
@click.option("--output", "path", metavar="FILE", help="Instead of standard output.")
@NOW
def sql(
    root: str, statement: str, round_: int | None, form: str | None, path: str | None, now: datetime | None
) -> None:
    """Ask the lake. Tables by their names; views urls, pages, changes, host_health.

    `SELECT * FROM columns WHERE table_name = 'urls'` tells what each column means.
    """
    from cycles.session import reading, setup
    from cycles.words import output

    lake = setup.open_lake(root)
    with reading.reader(lake.store, _now(now), round_) as reader:
        answer = reader.ask(statement)
        with output.opened(path, sys.stdout.buffer) as out:
            remark = output.emit(answer.schema, answer, form or output.form_of(path), out)
    if remark:
        _say(remark)


@command.command()
@LAKE
@click.option("--round", "round_", type=ROUND, help="The lake as this round left it.")
def check(root: str, round_: int | None) -> None:
    """Ask the lake whether what must always hold does hold; shows the first rows of what does not."""
    from cycles.commands import checking
    from cycles.session import setup

    asked = failed = 0
    for finding in checking.check(setup.open_lake(root), _now(None), round_):
        asked, failed = asked + 1, failed + (not finding.holds)
        click.echo(checking.told(finding))
    if failed:
        raise CheckFailed(f"{failed} of {asked} checks failed")
    click.echo(f"{asked} checks hold")


@command.command()
@LAKE
@click.argument("host", type=HOST)
@click.option("--reason", help="Why; it is kept.")
def pause(root: str, host: str, reason: str | None) -> None:
    """Hold a host, or all hosts of a domain, back from now on, known or not yet."""
    from cycles.commands import pausing
    from cycles.session import setup

    lake, now = setup.open_lake(root), _now(None)
    done = pausing.pause(lake, host, reason=reason, who=setup.who(), now=now)
    click.echo(f"{host} {'is' if done else 'was'} paused{'' if done else ' already'}")
    _say(pausing.known(lake, host, now))


@command.command()
@LAKE
@click.argument("host", type=HOST)
def resume(root: str, host: str) -> None:
    """Let a paused host or domain go on."""
    from cycles.commands import pausing
    from cycles.session import setup

    done = pausing.resume(setup.open_lake(root), host, who=setup.who(), now=_now(None))
    click.echo(f"{host} goes on" if done else f"{host} was not paused")


@command.command(context_settings={"ignore_unknown_options": True})  # a value may begin with a dash
@LAKE
@click.argument("action", type=click.Choice(["show", "explain", "set"]), default="show")
@click.argument("key", metavar="[KEY|SECTION]", required=False)
@click.argument("value", required=False)
@JSON
def config(root: str, action: str, key: str | None, value: str | None, form: str) -> None:
    """Show settings and where they come from; explain them; set KEY VALUE.

    Without KEY or SECTION all are shown or explained. Items of a list are separated by commas.
    """
    from cycles.commands import settings

    if action == "set":
        if key is None or value is None:
            raise click.UsageError("write: crawl config LAKE set KEY VALUE")
        click.echo(settings.change(root, key, value, _now(None)))
    elif value is not None:
        raise click.UsageError(f"`{action}` takes no VALUE")
    elif action == "explain":
        click.echo(settings.explained(root, key))
    else:
        click.echo(settings.shown(root, form, key))


@command.command()
@LAKE
def upkeep(root: str) -> None:
    """Compact, retain, sweep: beside rounds, never needed for them."""
    from cycles.rounds.upkeep import upkeep as run_upkeep

    with _resumable(root):
        click.echo(run_upkeep(root, _say))


def main() -> NoReturn:
    """Run a command and end the process with its exit code."""
    gc.set_threshold(50_000, 20, 100)  # imports make objects that stay; no garbage is found among them
    sys.exit(ended(command))


if __name__ == "__main__":
    main()
