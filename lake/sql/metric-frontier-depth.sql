-- How many URLs wait to be fetched now, and how old is the oldest?
SELECT
    count(*) AS frontier_depth,
    min(eligible_since) AS oldest_eligible,
    (epoch_us(getvariable('planning_now')) - epoch_us(min(eligible_since))) / 3.6e9 AS frontier_oldest_age_hours
FROM urls
WHERE due AND NOT paused
