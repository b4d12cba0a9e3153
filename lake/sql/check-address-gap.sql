-- Which requests started sooner after another one at their public address than its cap allowed? 2 ms are granted to clocks.
WITH spaced AS (
    SELECT
        round, "group", address, host, url, started_at, address_gap_ms,
        lag(started_at) OVER (PARTITION BY round, "group", address ORDER BY started_at, finished_at) AS previous_start
    FROM fetches
    WHERE address_gap_ms IS NOT NULL
)
SELECT *, (epoch_us(started_at) - epoch_us(previous_start)) / 1e3 AS apart_ms
FROM spaced
WHERE (epoch_us(started_at) - epoch_us(previous_start)) / 1e3 < address_gap_ms - 2
