-- How many hosts are known, shut off, failing, slowed down by answers 429 and 503, paused?
SELECT
    count(*) AS hosts,
    count(*) FILTER (circuit = 'open') AS circuit_open,
    count(*) FILTER (circuit = 'half_open') AS circuit_half_open,
    count(*) FILTER (consecutive_errors > 0) AS failing,
    count(*) FILTER (slowed_ms IS NOT NULL) AS slowed,
    count(*) FILTER (paused) AS paused,
    count(*) FILTER (due > 0) AS with_due_urls
FROM host_health
