-- How many URLs per second did each round put on its fetch lists, over its whole length?
WITH lengths AS (
    SELECT round, (epoch_us(committed_at) - epoch_us(opened_at)) / 1e6 AS seconds FROM rounds WHERE kind = 'round'
)
SELECT l.round, count(*) AS urls, any_value(seconds) AS seconds, count(*) / nullif(any_value(seconds), 0)
    AS urls_enqueued_per_sec
FROM frontier AS f
JOIN lengths AS l ON l.round = f.round
WHERE f.position >= 0
GROUP BY l.round
ORDER BY l.round
