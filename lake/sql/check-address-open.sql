-- Which requests were open at their public address beside more others than its cap allowed?
WITH moves AS (
    SELECT round, "group", address, host, url, started_at AS moment, 1 AS move, address_in_flight
    FROM fetches
    WHERE address_in_flight IS NOT NULL
    UNION ALL
    SELECT round, "group", address, host, url, finished_at, -1, address_in_flight
    FROM fetches
    WHERE address_in_flight IS NOT NULL
), counted AS (
    SELECT
        *,
        sum(move) OVER (
            PARTITION BY round, "group", address ORDER BY moment, move ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS open_then
    FROM moves
)
SELECT round, "group", address, host, url, moment AS started_at, open_then, address_in_flight
FROM counted
WHERE move = 1 AND open_then > address_in_flight
