-- How many URLs are in each state, and what does that state mean at this time?
SELECT state, status, count(*) AS urls
FROM urls
GROUP BY state, status
ORDER BY state, status
