-- How long have due URLs been waiting, by tier?
SELECT
    tier, count(*) AS urls,
    avg(epoch_us(getvariable('planning_now')) - epoch_us(eligible_since)) / 3.6e9 AS mean_hours,
    max(epoch_us(getvariable('planning_now')) - epoch_us(eligible_since)) / 3.6e9 AS max_hours
FROM urls
WHERE due AND NOT paused
GROUP BY tier
ORDER BY tier
