-- What share of each round's page requests failed? (target: below 5 %)
SELECT round, count(*) AS requests, count(*) FILTER (outcome NOT IN ('OK', 'NOT_MODIFIED', 'REDIRECT')) / count(*) AS fetch_error_rate
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
