-- Which rounds were committed twice?
SELECT round, count(*) AS rows FROM rounds WHERE kind = 'round' GROUP BY round HAVING count(*) > 1
