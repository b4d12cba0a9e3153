-- Which public addresses were asked most in each round, by how many hosts, and how long did requests stand in line there?
SELECT
    round, address, count(DISTINCT host) AS hosts, count(*) AS requests, min(address_gap_ms) AS gap_ms,
    avg(address_wait_ms) AS avg_wait_ms, max(address_wait_ms) AS max_wait_ms
FROM fetches
WHERE address_gap_ms IS NOT NULL
GROUP BY round, address
ORDER BY round, requests DESC, address
