-- Which pages link to a URL ($url_key), and which lists, redirects and robots.txt name it? The first twenty, oldest
-- first.
WITH found AS (
    SELECT day, round, source_key, source_domain, anchor, rel, via, depth, first_parse, admitted
    FROM links
    WHERE target_key = $url_key
    ORDER BY round, depth, source_key
    LIMIT 20
)
SELECT f.*, coalesce(u.url, r.url) AS source_url
FROM found AS f
LEFT JOIN (SELECT url_key, url FROM urls SEMI JOIN found ON found.source_key = url_key) AS u
    ON u.url_key = f.source_key
LEFT JOIN (
    SELECT url_key, min(url) AS url
    FROM fetches
    SEMI JOIN found ON found.source_key = url_key
    WHERE kind = 'robots'
    GROUP BY url_key
) AS r
    ON r.url_key = f.source_key
ORDER BY round, depth, source_key
