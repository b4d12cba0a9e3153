-- What share of each round's requests went over a connection kept from an earlier one?
SELECT round, count(*) AS requests, count(*) FILTER (conn_reused) / count(*) AS connection_reuse
FROM fetches
WHERE conn_reused IS NOT NULL
GROUP BY round
ORDER BY round
