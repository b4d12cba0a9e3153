-- What share of each round's conditional requests was answered 304?
SELECT round, count(*) AS requests, count(*) FILTER (status = 304) / count(*) AS recrawl_304_rate
FROM fetches
WHERE kind = 'page' AND request_validators IS NOT NULL
GROUP BY round
ORDER BY round
