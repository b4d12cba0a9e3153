-- Which URLs are due at the planning time and not held back, by key range ($lo to $hi)?
SELECT
    url_key, url, origin, host, domain, state, last_outcome, robots_version, policy_version, tier, score,
    eligible_since, next_fetch_at, kind, changefreq, sitemap_priority
FROM urls
WHERE due AND NOT paused AND url_key BETWEEN $lo AND $hi
ORDER BY url_key
