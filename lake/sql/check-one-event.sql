-- Which events were written twice?
SELECT event_id, count(*) AS rows FROM outbox GROUP BY event_id HAVING count(*) > 1
