-- What share of the pages has a text that another URL has too? (target: below 5 %)
SELECT
    count(*) AS pages, count(DISTINCT document_key) AS texts,
    1 - count(DISTINCT document_key) / nullif(count(*), 0) AS duplicate_content_rate
FROM urls
WHERE document_key IS NOT NULL AND state = 'FETCHED'
