-- Which requests started earlier than their host's gap in force allowed? 2 ms are granted to clocks.
-- A host that may have several requests open has a clock for each lane; a new round begins after all lanes of the last.
WITH spaced AS (
    SELECT
        host, lane, round, kind, url, started_at, required_gap_ms, gap_rule,
        greatest(
            max(finished_at) OVER (
                PARTITION BY host, coalesce(lane, 0) ORDER BY started_at, finished_at
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            max(finished_at) OVER (
                PARTITION BY host ORDER BY round RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ) AS previous_end
    FROM fetches
)
SELECT *, (epoch_us(started_at) - epoch_us(previous_end)) / 1e3 AS gap_ms
FROM spaced
WHERE (epoch_us(started_at) - epoch_us(previous_end)) / 1e3 < required_gap_ms - 2
