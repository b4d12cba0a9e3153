-- Which requests started earlier than the one clock of their host's politeness group allowed? 2 ms are granted to clocks.
WITH spaced AS (
    SELECT
        politeness_group, host, round, kind, url, started_at, group_gap_ms,
        max(finished_at) OVER (
            PARTITION BY politeness_group ORDER BY started_at, finished_at
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS previous_end
    FROM fetches
    WHERE politeness_group IS NOT NULL
)
SELECT *, (epoch_us(started_at) - epoch_us(previous_end)) / 1e3 AS gap_ms
FROM spaced
WHERE (epoch_us(started_at) - epoch_us(previous_end)) / 1e3 < group_gap_ms - 2
