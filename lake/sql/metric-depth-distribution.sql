-- How deep do URLs lie, in links from a seed? (flagged above 10)
SELECT depth, count(*) AS urls, count(*) FILTER (state = 'DISCOVERED') AS never_fetched, depth > 10 AS flagged
FROM urls
GROUP BY depth
ORDER BY depth
