-- Which URLs did a round plan twice?
SELECT round, url_key, count(*) AS rows
FROM frontier
WHERE position >= 0
GROUP BY round, url_key
HAVING count(*) > 1
