-- How many due URLs of each host are held back by an operator's pause or an opt-out, and how high do they score?
SELECT host, domain, count(*) AS count, max(score) AS score
FROM urls
WHERE due AND paused
GROUP BY host, domain
ORDER BY host
