-- Which texts are stored more than once?
SELECT document_key, count(*) AS rows, min(round) AS first_round, max(round) AS last_round
FROM documents
GROUP BY document_key
HAVING count(*) > 1
