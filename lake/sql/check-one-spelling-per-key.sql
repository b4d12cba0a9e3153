-- Which URLs changed their spelling, host or domain between rounds, by key range ($lo to $hi)?
SELECT url_key, min(url) AS one, max(url) AS other
FROM seen
WHERE url_key BETWEEN $lo AND $hi
GROUP BY url_key
HAVING min(url) <> max(url) OR min(host) <> max(host) OR min(domain) <> max(domain)
