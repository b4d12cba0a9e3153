-- Which page requests have two rows?
SELECT round, url_key, kind, attempt, hop, count(*) AS rows
FROM fetches
WHERE kind = 'page'
GROUP BY round, url_key, kind, attempt, hop
HAVING count(*) > 1
