"""The words of the lake: every table's columns, with their meaning, unit and when they are null.

Written once, here; the comments are carried into the Delta tables (lake.tables) and the docs.
What always holds: times are UTC with microseconds, durations end in `_ms` and are float milliseconds, sizes
are bytes, keys are int64, hashes are lower-case hex, names of states, outcomes and reasons are plain strings
that SQL can read. A line is name, type, meaning; `?` after a type means the column can be null.
This module does no I/O and knows no storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

__all__ = ["CANDIDATES", "INTERNAL", "TABLES", "VISITS", "append_tables", "empty", "required", "schema"]

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "int": pa.int64(),
    "short": pa.int32(),
    "float": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "day": pa.date32(),
    "bytes": pa.binary(),
    "texts": pa.list_(pa.string()),
}


def _schema(lines: str) -> pa.Schema:
    """`name type meaning` a line; a type ending in `?` is nullable."""
    fields = []
    for line in lines.strip().splitlines():
        name, kind, comment = line.strip().split(None, 2)
        # Arrow and Delta fields stay nullable (NOT NULL would make every reader's cast a matter of luck);
        # what may be null is kept beside the comment and checked when a file is written.
        meta = {"comment": comment, "nullable": "yes" if kind.endswith("?") else "no"}
        fields.append(pa.field(name, _TYPES[kind.rstrip("?")], metadata=meta))
    return pa.schema(fields)


SEEDS = _schema("""
url            text   as the operator gave it
url_key        int?   key of the URL; null where it was refused
kind           text   page, sitemap or feed
priority       text   critical, high, medium or low
added_at       time   when it was added
added_by       text   who or what added it
verdict        text   accepted or refused
reason         text?  reason code of a refusal
""")

SEEN = _schema("""
url_key               int     16 bits of the domain, 48 bits of the key form
url                   text    canonical: what is fetched
discovered_url        text    spelling first met
origin                text    scheme://host:port
host                  text    host name or IP address
domain                text    registrable domain; an IP address is its own
rules_version         int     version of the identity rules that made the key
kind                  text?   page, sitemap or feed: how it is read; null in rows older than this column: page
depth                 short   fewest links from a seed at discovery; of a sitemap, how many indexes led to it
found_by              text    seed, link, sitemap, feed, redirect, robots (Sitemap line) or well_known
first_referrer_key    int?    page that led here first; null for a seed
chain_id              int?    redirect chain that goes on here when it is first asked; null from then on
chain_hop             short?  how many redirects of that chain led here
first_seen_at         time    planning time of the round that discovered it
first_seen_round      int     that round
state                 text    DISCOVERED, FETCHED, FAILED_RETRYABLE, BLOCKED, QUARANTINED, GONE or TERMINAL
reason                text?   reason code of the state; null when there is nothing to explain
policy_version        text    settings in force at the last decision
robots_version        text?   robots copy that decided last; null before the first decision
attempts              short   failed attempts in a row
last_outcome          text?   outcome of the last attempt; null before the first
last_error            text?   its detail; null when it went well
http_status           short?  status of the last answer; null without one
first_fetched_at      time?   first time content arrived
last_checked_at       time?   last time an answer confirmed or changed what we know
last_changed_at       time?   last time the content was seen to have changed
crawl_count           int     answers so far
change_count          int     changes seen so far
changed_exposure_s    float   seconds of waiting that ended in a change
unchanged_exposure_s  float   seconds of waiting that ended in none
checks_decayed        float   checks, older ones counting less
changes_decayed       float   changes, older ones counting less
gone_sightings        short   answers 404 or 410 in a row, at most one a round
gone_since            time?   first of them
etag                  text?   validator for the next request
last_modified         text?   validator for the next request
content_hash          text?   SHA-256 of the decoded body
document_key          int?    document of its text; null before the first parse
content_length        int?    decoded bytes of the last content
sniffed_type          text?   media type of the last content, by its first bytes; null before the first
canonical_hint        text?   rel=canonical, a hint only
redirect_to_key       int?    where it redirects; null when it does not
importance            float   0 to 1
score                 float   priority, higher first
tier                  text    critical, high, medium, low or discovery
announced_by          int?    sitemap or feed that named it last; null where none did
lastmod               time?   newest date of change that one gave it
changefreq            text?   always to never, as its sitemap says: a hint, compared within its site only
sitemap_priority      float?  0 to 1, likewise
eligible_since        time    since when it has been waiting to be fetched
next_fetch_at         time    not before this
visited_round         int?    round that asked it last, or decided not to; null before the first
interval_s            float   seconds between checks that led to next_fetch_at
fetched_at            time?   stage: last successful fetch
parsed_at             time?   stage: last parse
stored_at             time?   stage: document last confirmed in the lake
index_ready_at        time?   stage: event last written to the outbox
withheld              text?   why its text is not kept and told: noindex or unavailable_after; else null
unavailable_after     time?   time after which the page asks not to be indexed; asked again then
header_robots         text?   directives of X-Robots-Tag that concern us: such a page is always fetched whole
round                 int     round that wrote this row; the newest wins
""")

SIGNALS = _schema("""
url_key     int    the linked URL
round       int    round that merged the links
in_links    int    links from pages parsed for the first time
best_depth  short  fewest links from a seed
best_score  float  best score a link gave
""")

FRONTIER = _schema("""
day                 day     day of the round's start
round               int     round
group               short   host group; -1 for a row about what was cut
position            int     order in the group's fetch list; -1 for a cut
url_key             int?    null for a cut
url                 text?   null for a cut
host                text    host
kind                text?   page, sitemap or feed; null for a cut
tier                text?   tier; null for a cut
score               float   score; of a cut: the score below which it cut
reason              text    why now, or why cut
predicted_start_ms  float?  from the start of fetching; null for a cut
count               int     1; of a cut: URLs left out
""")

FETCHES = _schema("""
day                 day     day of the round's start
round               int     round
kind                text    page, robots, sitemap or feed
url                 text    what was asked
url_key             int     its key
origin              text    scheme://host:port
host                text    host
domain              text    domain
group               short   host group
fence               int     driver under which it was asked
attempt             short   attempts of this URL in this round, from 1
chain_id            int     same for all hops of one redirect chain, of several rounds too
hop                 short   0 for the URL with which its chain began
next_url            text?   where it redirects
final_url_key       int?    last URL of the chain as far as known here
started_at          time    real time, request dispatched
finished_at         time    real time, last byte or failure
required_gap_ms     float   gap in force since the end of the host's (or lane's) last request; 0 for the first
gap_rule            text    none, floor, crawl_delay, factor, slowed, backoff or retry_after
address             text?   peer of the connection used
address_gap_ms      float?  at a public address: least time between two starts there, in this group
address_in_flight   short?  likewise: requests open there at once, at most
address_wait_ms     float?  likewise: time it stood in line for its address
dns_ms              float?  time to resolve, 0 where answered from memory; null where the host is an address
dns_cached          bool?   answered from memory; null where the host is an address
dns_note            text?   what of the name's answer was not used: addresses refused or too many, a TTL cut
connect_ms          float?  time to connect; 0 on a kept connection
tls_ms              float?  TLS handshake; null without TLS
first_byte_ms       float?  from dispatch to the first byte
total_ms            float   from dispatch to the end
conn_reused         bool?   kept connection
http_version        text?   1.0, 1.1 or 2
status              short?  HTTP status
outcome             text    see crawl.outcomes
reason              text?   detail of the outcome
request_validators  text?   conditional header lines sent, one a line
response_headers    text?   header lines as received, one a line
content_type        text?   Content-Type header; the last, if there are several
sniffed_type        text?   media type by header and first bytes (MIME Sniffing); null where nobody looked
wire_bytes          int     body bytes as received
bytes               int     body bytes decoded
body_hash           text?   SHA-256 of the decoded body; null without one
truncated           bool    the body ended early or hit a cap
retry_after_ms      float?  Retry-After, if sent
robots_version      text?   robots copy that allowed it; null for robots itself
politeness_group    text?   hosts with which it shares one clock, by the operator's word; null for its own
group_gap_ms        float?  gap in force since the end of that group's last request; null for its own clock
lane                short?  which of the requests that may be open at its host at once; null where one may
policy_version      text    settings in force
""")

BODIES = _schema("""
day            day    day of the round's start
round          int    round that stored it
body_hash      text   SHA-256 of the decoded body
bytes          bytes  the decoded body, compressed with zstd
length         int    decoded bytes
media_type     text   type without parameters, as declared; empty where none was
sniffed_type   text?  type it is read as: by header and first bytes (MIME Sniffing)
truncated      bool   it is the beginning of a body that ended early or hit a cap
first_url_key  int    smallest (depth, key) URL of the round that brought it
""")

DOCUMENTS = _schema("""
day                day     day of the round's start
round              int     round that stored it
document_key       int     keyed hash of the text; of the body where a reader found no text in it
text               text    visible text
first_url_key      int     smallest (depth, key) URL of the round that brought it
url                text    its URL
title              text?   title
description        text?   meta description
language           text?   BCP 47
language_source    text?   who told it: markup, header or detected (from the text); null without a language
charset            text?   encoding used to decode, WHATWG name; null of what is no markup
content_type       text?   Content-Type header
sniffed_type       text?   media type it was read as
metadata           text?   JSON object: what the reader of its type tells besides; null where nothing
last_modified      text?   Last-Modified header
canonical_hint     text?   rel=canonical
robots_directives  text?   meta robots and X-Robots-Tag as far as they concern us, comma-separated
noindex            bool?   they ask not to index; null (as the next) in rows older than the column
nofollow           bool?   they ask not to follow any link
noarchive          bool?   they ask to keep no copy
unavailable_after  time?   they ask not to index after this time
withheld           text?   why the text is empty here: noindex or unavailable_after; null where it is kept
text_chars         int     characters of text, of a withheld one too
html_bytes         int     decoded bytes of the page
truncated          bool    it is the text of a beginning: the body ended early or hit a cap
link_count         short   links found
text_ratio         float?  characters of text a byte of the page; null of what is no markup
script_count       short?  script elements; null of what is no markup
script_chars       int?    characters in them; null of what is no markup
script_signs       text?   signs that scripts make the text (crawl.html.scripted), comma-separated; or null
simhash            int?    64-bit SimHash of the text; null where not computed
minhash            bytes?  MinHash signature; null where not computed
needs_rendering    bool?   the text seems to be made by scripts; null where not judged
""")

LINKS = _schema("""
day            day    day of the round's start
round          int    round that parsed the source
source_key     int    page that links
source_domain  text   its domain
target_key     int    page linked
target_url     text   canonical
target_domain  text   its domain
is_internal    bool   both in one domain
anchor         text?  anchor text
rel            text?  rel tokens
via            text   a, area, link, frame, iframe, refresh, header, redirect or what names sitemaps
target_kind    text?  page, sitemap or feed: how the target is to be read; null as in `seen`
lastmod        time?  when the target changed last, as a sitemap or feed says
changefreq     text?  how often, as a sitemap says
sitemap_priority float? 0 to 1, as a sitemap says
depth          short  depth of the target through this link
first_parse    bool   the source was parsed for the first time: it counts as an in-link
admitted       bool   may become a candidate; false: out of scope or over a limit (counted in rejects)
chain_id       int?   of a redirect, and of a refresh: the chain that goes on with the target
chain_hop      short? likewise: how many redirects of it led to the target
""")

REJECTS = _schema("""
day             day    day of the round's start
round           int    round
stage           text   seed, plan, fetch, parse, dedup or merge
reason          text   reason code
host            text   host concerned; empty where there is none
template        text   URL pattern concerned; empty where there is none
count           int    how many
example         text   one of them
policy_version  text   settings in force
""")

CLUSTERS = _schema("""
day           day     day of the round's start
round         int     round that labelled it
url_key       int     member
document_key  int     its document
method        text    simhash or minhash
threshold     float   threshold in force
score         float   similarity to the head
head_key      int     document that leads the cluster
undone_at     time?   when an operator undid the label
""")

HOSTS = _schema("""
host_key              int     key of the host
host                  text    host name or IP address
domain                text    domain
next_allowed_at       time?   real time before which nothing is asked; null when never asked
delay_ms              float   gap in force
robots_delay_ms       float?  Crawl-delay; null when not stated
max_in_flight         short   requests that the operator lets be open at once; with a Crawl-delay, one is
latency_ema_ms        float?  moving average of request durations; null when never answered
backoff_until         time?   real time until which the host is left alone
consecutive_errors    short   host-level errors in a row
circuit               text    closed, open or half_open
addresses             texts   last known addresses
addresses_expire_at   time?   when they must be resolved again
robots_version        text?   current robots copy
robots_fetched_at     time?   when it was obtained (planning time)
budget_day            day?    day the day budget counts for
urls_on_budget_day    int     page requests on that day
pending_count         int     known URLs never fetched
in_domains            int     distinct domains linking here
budget                int     page requests a day
level                 short   how deep its backlog is, in budgets
near_duplicate_ratio  float?  share of near duplicates; null where not judged
lastmod_precision     float?  of announced changes looked at, the share that were; null before the first
lastmod_recall        float?  of listed pages that changed, the share announced; null before the first
lastmod_looked        float?  announced changes looked at, as far as they still count
lastmod_changed       float?  listed pages that changed, likewise
validator_304_rate    float?  share of conditional requests answered 304; null before the first
render_tier           text?   render lane; null where not judged
render_confidence     float?  its confidence; null where not judged
render_samples        int     pages judged for it
politeness_group      text?   operator's group; null for its own clock
first_ms              float?  moving average of a round's first request, with connecting; null without one
excess_ms             float?  mean by which gaps were longer than floor and Crawl-delay; null before two
slowed_ms             float?  least gap since a 429 or 503, shorter after each success; null in good times
round                 int     round that wrote this row; the newest wins
""")

ROBOTS = _schema("""
round        int     round that obtained it
origin       text    scheme://host:port
version      text    names this copy: hash of origin and text, or how it failed
fetched_at   time    planning time
valid_until  time    planning time after which it must be asked again
status       short?  HTTP status; null without an answer
how          text    fetched, unavailable, unreachable, last_good or elsewhere (in a domain of another owner)
body_hash    text?   SHA-256 of the body; null without one
text         text    the rules in force; empty allows everything unless unreachable
sitemaps     texts   Sitemap lines
elsewhere    texts?  other domains that its redirects led to: asked in one group with this one from then on
""")

OUTBOX = _schema("""
day           day    day of the round's start
round         int    round that wrote it
event_id      text   derived from URL, document and round
kind          text   new, changed or deleted
url_key       int    URL
document_key  int?   document; null for deleted
created_at    time   planning time of the round
""")

SUPPRESSIONS = _schema("""
kind          text   pause or opt_out
pattern       text   host, origin, domain or URL
reason        text?  why
requested_by  text?  who asked
requested_at  time   when
verified_at   time?  when it was verified; null where it needs none
withdrawn_at  time?  when it was taken back; null while it holds
""")

AUDIT = _schema("""
at       time   when
who      text   who
action   text   what was done
subject  text   to what
detail   text?  more
""")

ROUNDS = _schema("""
round           int     round
kind            text    round or upkeep
opened_at       time    real time
committed_at    time    real time
fence           int     driver that committed it
driver          text    its host and process
now             time    planning time
window_s        float   seconds allowed for fetching
settings        text    JSON of the settings in force
policy_version  text    hash of them
versions        text    JSON: Delta version of every table that belongs to this round
counts          text    JSON: rows by stage; attempted: URLs asked; fetched: content confirmed or brought
bytes_read      text    JSON: bytes read by stage
bytes_written   text    JSON: bytes written by stage
stage_ms        text    JSON: milliseconds by stage
plan            text    JSON: what was predicted
actual          text    JSON: what happened
""")

#: every table of the lake by name
TABLES: Final[Mapping[str, pa.Schema]] = {
    "seeds": SEEDS,
    "seen": SEEN,
    "signals": SIGNALS,
    "frontier": FRONTIER,
    "fetches": FETCHES,
    "bodies": BODIES,
    "documents": DOCUMENTS,
    "links": LINKS,
    "rejects": REJECTS,
    "clusters": CLUSTERS,
    "hosts": HOSTS,
    "robots": ROBOTS,
    "outbox": OUTBOX,
    "suppressions": SUPPRESSIONS,
    "audit": AUDIT,
    "rounds": ROUNDS,
}

#: what a round learnt about one URL: one row per url_key, from parse to merge (never a table of its own)
VISITS = _schema("""
url_key          int     URL
url              text    canonical
kind             text    page, sitemap or feed
host             text    host
depth            short   depth of the planned URL that led here (a hop keeps its chain's depth)
referrer_key     int?    previous hop; null for a planned URL
planned          bool    it was in the plan; false for a hop met on the way
outcome          text    last outcome, or the skip's
reason           text?   its detail
http_status      short?  null without an answer
robots_version   text?   robots copy that decided
fetched_at       time    real time of the last request's end; of a skip: of the decision
etag             text?   validator received
last_modified    text?   validator received
content_hash     text?   SHA-256 of the body; null unless content arrived
content_length   int?    decoded bytes
sniffed_type     text?   media type by header and first bytes
redirect_to_key  int?    target of a redirect
document_key     int?    document of its text; null where not parsed
withheld         text?   noindex or unavailable_after: why its document has no text, or must lose it
unavailable_after  time?  as the answer says
header_robots    text?   directives of X-Robots-Tag that concern us
changed          bool    content arrived and differs from what was known (true for the first)
truncated        bool    its body ended early or hit a cap: what came of it is kept all the same
canonical_hint   text?   rel=canonical
retry_after_ms   float?  Retry-After of the answer
""")

#: URLs met in this round, as merge takes them: from links files, seeds and redirects alike
CANDIDATES = _schema("""
target_key      int     the URL's key
target_url      text    canonical
discovered_url  text?   spelling met, where it differs
target_domain   text    its domain
source_key      int?    page that led here; null for a seed
depth           short   depth through this path
found_by        text    seed, link, sitemap, feed, redirect, robots or well_known
kind            text    page, sitemap or feed
announced       bool    a sitemap or feed that may speak for it names it
lastmod         time?   date of change it gives
changefreq      text?   how often it changes, it says
sitemap_priority float? 0 to 1, it says
counts          bool    counts as an in-link
chain_id        int?    redirect chain that goes on with the target
chain_hop       short?  how many redirects of it led there
importance      float   importance this path gives, 0 to 1
score           float   score this path gives
""")

INTERNAL: Final[Mapping[str, pa.Schema]] = {"visits": VISITS, "candidates": CANDIDATES}


def schema(table: str) -> pa.Schema:
    """Columns of a table of the lake. Raises KeyError for a name that is none."""
    return TABLES[table]


def append_tables() -> tuple[str, ...]:
    """Tables partitioned by `day`, to which a round only adds."""
    return tuple(name for name, columns in TABLES.items() if "day" in columns.names)


def required(columns: pa.Schema) -> tuple[str, ...]:
    """Names of the columns that must not be null."""
    return tuple(f.name for f in columns if (f.metadata or {}).get(b"nullable") == b"no")


def empty(columns: pa.Schema) -> pa.Table:
    """A table of these columns without rows."""
    return columns.empty_table()
