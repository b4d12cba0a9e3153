-- How many hours ago were live pages last checked, by tier?
SELECT
    tier, count(*) AS pages,
    avg(epoch_us(getvariable('planning_now')) - epoch_us(last_checked_at)) / 3.6e9 AS avg_staleness_hours,
    quantile_cont(epoch_us(getvariable('planning_now')) - epoch_us(last_checked_at), 0.95) / 3.6e9 AS p95_hours
FROM urls
WHERE state = 'FETCHED'
GROUP BY tier
ORDER BY tier
