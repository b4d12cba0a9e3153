-- Which origins' newest robots.txt names each of these sitemaps ($urls), and since which round?
SELECT named.url AS url, r.origin, (
    SELECT min(o.round) FROM robots AS o WHERE o.origin = r.origin AND list_contains(o.sitemaps, named.url)
) AS since
FROM robots AS r, unnest(r.sitemaps) AS named(url)
ANTI JOIN robots AS n ON n.origin = r.origin AND (n.round, n.fetched_at) > (r.round, r.fetched_at)
WHERE named.url IN (SELECT unnest($urls::VARCHAR[]))
ORDER BY ALL
