-- How many hosts are known, open, backing off, held back?
SELECT
    count(*) AS hosts,
    count(*) FILTER (circuit = 'open') AS circuit_open,
    count(*) FILTER (circuit = 'half_open') AS circuit_half_open,
    count(*) FILTER (consecutive_errors > 0) AS failing,
    count(*) FILTER (paused) AS paused,
    count(*) FILTER (due > 0) AS with_due_urls
FROM host_health
