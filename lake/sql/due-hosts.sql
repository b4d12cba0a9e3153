-- Which hosts have URLs due, how many, and how high do they score?
SELECT host, domain, count(*) AS due, max(score) AS best_score, min(eligible_since) AS oldest
FROM urls
WHERE due AND NOT paused
GROUP BY host, domain
ORDER BY due DESC, host
