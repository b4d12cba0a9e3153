"""What a crawl is: its values, rules and tools. Knows no cluster, no tables, no SQL and no clock.

The words, used in this sense everywhere:

origin      scheme, host and port; what a robots.txt speaks for.
host        a name or address that is asked; the unit of politeness: each has a clock of its own.
domain      the registrable domain of a host (Public Suffix List); the unit of ownership: in a round a domain
            belongs to one host group. An IP address is its own domain.
host group  domains that one task fetches in a round.
canonical   a URL as it is fetched: the WHATWG serialisation without its fragment.
key form    a URL as it is deduplicated: spellings that mean the same page share one.
url_key     64 bits from domain and key form; sorts a domain's URLs together.
seed        a URL given by the operator.
link        a URL found in a page, with its anchor and where it stood.
candidate   a link that waits to be merged into the seen set.
seen        every URL ever known, with its state; one row per URL.
frontier    the part of `seen` that is due; it is asked for, not kept.
fetch list  what a plan chose for a round, by host, in order; for all else it gives the reason.
fetch       one request and its answer, robots.txt and redirects included.
outcome     how a fetch ended; with the URL's state it gives the next state (`crawl.lifecycle`).
document    a distinct text; many URLs may share one.
round       plan, fetch, parse, dedup, merge, publish, seal and commit: one transaction of the lake.
window      how long a round may fetch.
stage       one step of a round: a plain function from rows to rows, in `crawl.stages`.
lake        the tables of a crawl, in a folder or a bucket.

Politeness, which has no off switch: a host's next request starts no earlier than the end of the one before
plus the gap in force, and robots.txt is checked before every request and at every hop.

Stable public functions: `crawl.url.canonical`, `key_form`, `domain`; `crawl.robots.parse`; `crawl.html.read`;
`crawl.sitemap.read`; `crawl.politeness.retry_after`. All else is imported from its module, and may move.
"""
