-- At what rate was each host asked in the newest round, against the most its gap allows?
SELECT
    host, count(*) AS requests,
    (count(*) - 1) / nullif((epoch_us(max(started_at)) - epoch_us(min(started_at))) / 1e6, 0) AS per_second,
    greatest(count(DISTINCT lane), 1) * 1000 / nullif(avg(required_gap_ms), 0) AS limit_per_second
FROM fetches
WHERE round = (SELECT max(round) FROM fetches)
GROUP BY host
ORDER BY requests DESC, host
