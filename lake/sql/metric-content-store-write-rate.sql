-- How many bytes of new content per second did each round store, over its whole length?
WITH lengths AS (
    SELECT round, (epoch_us(committed_at) - epoch_us(opened_at)) / 1e6 AS seconds FROM rounds WHERE kind = 'round'
)
SELECT l.round, sum(b.length)::BIGINT AS bytes, any_value(seconds) AS seconds, sum(b.length)
    / nullif(any_value(seconds), 0) AS content_store_write_rate
FROM bodies AS b
JOIN lengths AS l ON l.round = b.round
GROUP BY l.round
ORDER BY l.round
