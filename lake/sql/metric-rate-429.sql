-- What share of each round's page requests was answered 429 Too Many Requests?
SELECT round, count(*) AS requests, count(*) FILTER (status = 429) / count(*) AS rate_429
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
