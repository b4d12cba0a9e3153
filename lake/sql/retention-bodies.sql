-- Which bodies older than $before may go: no URL that was checked since $since has them?
SELECT day, body_hash
FROM bodies
ANTI JOIN (SELECT content_hash FROM urls WHERE last_checked_at >= $since) AS needed ON content_hash = body_hash
WHERE day < $before
