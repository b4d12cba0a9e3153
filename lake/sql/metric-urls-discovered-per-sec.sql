-- How many new URLs per second did each round discover, over its whole length?
WITH lengths AS (
    SELECT round, (epoch_us(committed_at) - epoch_us(opened_at)) / 1e6 AS seconds FROM rounds WHERE kind = 'round'
)
SELECT l.round, count(*) AS urls, any_value(seconds) AS seconds, count(*) / nullif(any_value(seconds), 0)
    AS urls_discovered_per_sec
FROM urls AS u
JOIN lengths AS l ON l.round = u.first_seen_round
GROUP BY l.round
ORDER BY l.round
