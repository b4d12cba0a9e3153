-- What share of each round's page requests timed out? (target: below 3 %)
SELECT round, count(*) AS requests, count(*) FILTER (outcome IN ('TIMEOUT', 'CONNECT_TIMEOUT', 'DNS_TIMEOUT')) / count(*) AS timeout_rate
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
