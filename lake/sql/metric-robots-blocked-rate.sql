-- What share of the URLs decided so far was last refused by robots.txt?
SELECT
    count(*) AS urls,
    count(*) FILTER (last_outcome IN ('ROBOTS_DENIED', 'ROBOTS_UNREACHABLE')) / nullif(count(*), 0)
        AS robots_blocked_rate
FROM urls
WHERE last_outcome IS NOT NULL
