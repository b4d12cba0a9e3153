"""Where a crawl is kept: tables, sorted runs, commits and SQL. Knows no HTTP, no HTML and no cluster.

What a reader may rely on: a round appears whole or not at all when read at the versions that `rounds` names;
no file name is ever written twice; every file carries statistics for the columns its table promises them for.
"""
