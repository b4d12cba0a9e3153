-- In which rounds was a URL ($url_key) planned, what was cut of its host ($host), and how many of it were planned?
SELECT f.*, coalesce(p.planned, 0) AS host_planned
FROM frontier AS f
LEFT JOIN (
    SELECT round, count(*) AS planned
    FROM frontier
    WHERE host = $host AND position >= 0
    GROUP BY round
) AS p USING (round)
WHERE f.url_key = $url_key OR (f.host = $host AND f.position < 0)
ORDER BY round, position
