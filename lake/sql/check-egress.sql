-- Which requests went to an address that is not allowed ($denied)?
SELECT round, kind, url, host, address, started_at
FROM fetches
WHERE address IN (SELECT unnest($denied::VARCHAR[]))
