-- How many requests were in flight on average in each round?
SELECT
    round,
    sum(total_ms) / nullif((epoch_us(max(finished_at)) - epoch_us(min(started_at))) / 1e3, 0) AS in_flight
FROM fetches
GROUP BY round
ORDER BY round
