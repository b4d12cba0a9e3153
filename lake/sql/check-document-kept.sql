-- Which live pages name a text that is not in the lake?
SELECT url_key, url, document_key, last_checked_at
FROM urls
ANTI JOIN documents USING (document_key)
WHERE document_key IS NOT NULL AND state NOT IN ('GONE', 'TERMINAL')
