"""A web grown from a seed, served over real HTTP on loopback, with its truth known.

It is used by tests, by the demonstration and for rehearsals. Nothing in it imports the crawler, so what it
says about a crawl's expected result is a second opinion. `grow.Web` describes, `serve` answers over HTTP,
`truth` tells what a crawl must find.
"""
