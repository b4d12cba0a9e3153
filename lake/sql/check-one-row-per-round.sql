-- Which URLs have more than one row of `seen` in one round, by key range ($lo to $hi)?
SELECT url_key, round, count(*) AS rows
FROM seen
WHERE url_key BETWEEN $lo AND $hi
GROUP BY url_key, round
HAVING count(*) > 1
