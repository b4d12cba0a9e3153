-- In which rounds was a URL ($url_key) planned, and what was cut of its host ($host)?
SELECT *
FROM frontier
WHERE url_key = $url_key OR (host = $host AND position < 0)
ORDER BY round, position
