-- How close did each host's requests come to the gap in force? The smallest distance, in milliseconds.
WITH spaced AS (
    SELECT
        host, started_at, required_gap_ms, gap_rule,
        (epoch_us(started_at) - epoch_us(max(finished_at) OVER earlier)) / 1e3 AS gap_ms
    FROM fetches
    WINDOW earlier AS (
        PARTITION BY host, coalesce(lane, 0) ORDER BY started_at, finished_at
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    host, count(*) AS gaps, min(gap_ms - required_gap_ms) AS smallest_slack_ms, min(gap_ms) AS smallest_gap_ms,
    max(required_gap_ms) AS largest_required_ms
FROM spaced
WHERE gap_ms IS NOT NULL
GROUP BY host
ORDER BY smallest_slack_ms, host
