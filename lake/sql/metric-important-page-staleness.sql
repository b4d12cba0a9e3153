-- How long ago was each of the 1,000 most important domains' best page checked? (target: below 24 h)
SELECT
    domain, max(importance) AS importance, arg_max(url, importance) AS url,
    (epoch_us(getvariable('planning_now')) - epoch_us(arg_max(last_checked_at, importance))) / 3.6e9
        AS staleness_hours
FROM urls
WHERE state = 'FETCHED'
GROUP BY domain
ORDER BY importance DESC, domain
LIMIT 1000
