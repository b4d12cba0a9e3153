-- Which hosts gave a round ($round) its pages, and at what pace?
SELECT
    host, count(*) AS requests, count(*) FILTER (outcome IN ('OK', 'NOT_MODIFIED')) AS fetched,
    count(*) FILTER (outcome = 'REDIRECT') AS redirected,
    count(*) FILTER (outcome NOT IN ('OK', 'NOT_MODIFIED', 'REDIRECT')) AS failed,
    sum(wire_bytes)::BIGINT AS wire_bytes, avg(total_ms) AS mean_ms,
    (epoch_us(max(finished_at)) - epoch_us(min(started_at))) / 1e6 AS seconds
FROM fetches
WHERE round = $round AND kind = 'page'
GROUP BY host
ORDER BY requests DESC, host
