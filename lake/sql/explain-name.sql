-- What is the URL of a key ($url_key) that has no row: of a robots.txt, or of what no crawl takes up?
SELECT min(url) AS url
FROM (
    SELECT url FROM fetches WHERE url_key = $url_key
    UNION ALL
    SELECT target_url AS url FROM links WHERE target_key = $url_key
)
HAVING count(*) > 0
