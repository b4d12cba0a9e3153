-- How many URLs of each domain were never fetched? (flagged above 100,000)
SELECT domain, count(*) AS pending, count(*) > 100000 AS flagged
FROM urls
WHERE state = 'DISCOVERED'
GROUP BY domain
ORDER BY pending DESC, domain
LIMIT 1000
