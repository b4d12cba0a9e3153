-- How many pages per second did each round fetch, from its first request to its last?
SELECT
    round,
    count(*) FILTER (outcome IN ('OK', 'NOT_MODIFIED')) AS pages,
    (epoch_us(max(finished_at)) - epoch_us(min(started_at))) / 1e6 AS seconds,
    pages / nullif(seconds, 0) AS pages_fetched_per_sec
FROM fetches
WHERE kind = 'page'
GROUP BY round
ORDER BY round
