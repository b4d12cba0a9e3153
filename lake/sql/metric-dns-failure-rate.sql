-- What share of each round's name look-ups, those answered from memory included, found no address? (target: below 0.1 %)
SELECT round, count(*) AS lookups, count(*) FILTER (outcome IN ('DNS_FAILURE', 'DNS_TIMEOUT')) / count(*) AS dns_failure_rate
FROM fetches
WHERE dns_cached IS NOT NULL
GROUP BY round
ORDER BY round
