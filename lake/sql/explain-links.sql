-- Which pages link to a URL ($url_key)? The first twenty, oldest first.
WITH found AS (
    SELECT day, round, source_key, source_domain, anchor, rel, via, depth, first_parse, admitted
    FROM links
    WHERE target_key = $url_key
    ORDER BY round, depth, source_key
    LIMIT 20
)
SELECT f.*, u.url AS source_url
FROM found AS f
LEFT JOIN (SELECT url_key, url FROM urls SEMI JOIN found ON found.source_key = url_key) AS u
    ON u.url_key = f.source_key
ORDER BY round, depth, source_key
