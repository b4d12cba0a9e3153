-- Which bodies are stored more than once?
SELECT body_hash, count(*) AS rows, min(round) AS first_round, max(round) AS last_round
FROM bodies
GROUP BY body_hash
HAVING count(*) > 1
