-- Which pages' links older than $before and merged (up to $merged) may go: the page is gone, or was parsed anew?
WITH moments AS (SELECT round, min(now) AS now FROM rounds WHERE kind = 'round' GROUP BY round),
sources AS (SELECT DISTINCT day, round, source_key FROM links WHERE day < $before AND round <= $merged)
SELECT s.day, s.round, s.source_key
FROM sources AS s
LEFT JOIN moments AS m USING (round)
ANTI JOIN (
    SELECT url_key, parsed_at FROM urls WHERE state NOT IN ('GONE', 'TERMINAL')
) AS u ON u.url_key = s.source_key AND (m.now IS NULL OR u.parsed_at IS NULL OR m.now >= u.parsed_at)
