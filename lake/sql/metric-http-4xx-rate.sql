-- What share of each round's page requests was answered 4xx?
SELECT round, count(*) AS requests, count(*) FILTER (status BETWEEN 400 AND 499) / count(*) AS http_4xx_rate
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
