-- Which URLs have more than one newest row, by key range ($lo to $hi)?
SELECT url_key, count(*) AS rows
FROM urls
WHERE url_key BETWEEN $lo AND $hi
GROUP BY url_key
HAVING count(*) > 1
