-- Which origins' newest robots.txt names each of these sitemaps ($urls)?
SELECT named.url AS url, r.origin
FROM robots AS r, unnest(r.sitemaps) AS named(url)
ANTI JOIN robots AS n ON n.origin = r.origin AND (n.round, n.fetched_at) > (r.round, r.fetched_at)
WHERE named.url IN (SELECT unnest($urls::VARCHAR[]))
ORDER BY ALL
