-- How many domains were asked in each hour?
SELECT date_trunc('hour', started_at) AS hour, count(*) AS requests, count(DISTINCT domain) AS domains
FROM fetches
WHERE kind = 'page'
GROUP BY hour
ORDER BY hour
