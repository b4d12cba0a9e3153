-- What share of the links of each round led out of scope or over a limit?
SELECT round, count(*) AS links, count(*) FILTER (NOT admitted) / count(*) AS scope_blocked_rate
FROM links
GROUP BY round
ORDER BY round
