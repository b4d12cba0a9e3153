-- How long would it take to fetch all due URLs at the pace of the newest round?
WITH pace AS (
    SELECT count(*) / nullif((epoch_us(max(finished_at)) - epoch_us(min(started_at))) / 1e6, 0) AS per_second
    FROM fetches
    WHERE kind = 'page' AND round = (SELECT max(round) FROM fetches)
)
SELECT count(*) AS backlog, any_value(per_second) AS pages_per_second, count(*) / any_value(per_second) AS
    drain_seconds
FROM urls, pace
WHERE due AND NOT paused
