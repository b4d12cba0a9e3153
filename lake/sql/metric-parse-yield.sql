-- What share of the URLs that gave content has a text in the lake?
SELECT
    count(*) AS fetched, count(document_key) AS parsed, count(document_key) / nullif(count(*), 0) AS parse_yield
FROM urls
WHERE fetched_at IS NOT NULL AND state = 'FETCHED'
