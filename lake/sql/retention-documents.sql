-- Which texts older than $before may go: no live URL has them, and none that was checked since $since?
SELECT day, document_key
FROM documents
ANTI JOIN (
    SELECT document_key
    FROM urls
    WHERE document_key IS NOT NULL AND (state NOT IN ('GONE', 'TERMINAL') OR last_checked_at >= $since)
) AS needed USING (document_key)
WHERE day < $before
