-- Which words of the operator hold a URL back, or did so ($url, $origin, $host, $domain)?
SELECT * FROM suppressions WHERE pattern IN ($url, $origin, $host, $domain) ORDER BY requested_at
