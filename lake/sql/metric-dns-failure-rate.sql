-- What share of each round's page requests found no address? (target: below 0.1 %)
SELECT round, count(*) AS requests, count(*) FILTER (outcome IN ('DNS_FAILURE', 'DNS_TIMEOUT')) / count(*) AS dns_failure_rate
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
