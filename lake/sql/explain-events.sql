-- Which events were written for a URL ($url_key)?
SELECT * FROM outbox WHERE url_key = $url_key ORDER BY round
