-- Which requests were sent for the robots.txt of a URL's origin ($origin), with the other hops of their chains?
SELECT round, url, url_key, status, outcome, reason, started_at, hop
FROM fetches
WHERE kind = 'robots'
    AND chain_id IN (SELECT chain_id FROM fetches WHERE kind = 'robots' AND origin = $origin)
ORDER BY started_at, hop
