-- How long did URLs wait from discovery to their first content, by tier? (target: below 4 h for high priority)
SELECT
    tier, count(*) AS pages,
    avg(epoch_us(first_fetched_at) - epoch_us(first_seen_at)) / 3.6e9 AS mean_hours,
    quantile_cont(epoch_us(first_fetched_at) - epoch_us(first_seen_at), 0.95) / 3.6e9 AS p95_hours
FROM urls
WHERE first_fetched_at IS NOT NULL
GROUP BY tier
ORDER BY tier
