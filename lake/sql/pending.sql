-- How many known URLs of each host were never fetched?
SELECT host, domain, count(*) AS pending
FROM urls
WHERE state = 'DISCOVERED'
GROUP BY host, domain
ORDER BY host
