-- Which requests were sent for a URL ($url_key), with their phases, and the other hops of their chains?
SELECT *
FROM fetches
WHERE chain_id IN (SELECT chain_id FROM fetches WHERE url_key = $url_key)
ORDER BY started_at, hop
