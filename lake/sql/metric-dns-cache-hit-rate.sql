-- What share of each round's name look-ups was answered from memory? (target: above 90 %)
SELECT round, count(*) AS lookups, count(*) FILTER (dns_cached) / count(*) AS dns_cache_hit_rate
FROM fetches
WHERE dns_cached IS NOT NULL
GROUP BY round
ORDER BY round
