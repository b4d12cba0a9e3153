-- How long do pages stay as they are between changes seen, against how often we look, by tier?
SELECT
    tier, count(*) AS pages,
    avg(epoch_us(last_checked_at) - epoch_us(last_changed_at)) / 3.6e9 AS mean_unchanged_hours,
    avg(interval_s) / 3600 AS mean_interval_hours
FROM urls
WHERE state = 'FETCHED' AND last_changed_at IS NOT NULL
GROUP BY tier
ORDER BY tier
