-- What share of each round's page requests was answered 5xx?
SELECT round, count(*) AS requests, count(*) FILTER (status BETWEEN 500 AND 599) / count(*) AS http_5xx_rate
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
