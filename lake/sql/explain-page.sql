-- Which document does a URL ($url_key) have now, and which URL brought it first?
SELECT p.* EXCLUDE (text), (SELECT url FROM urls WHERE url_key = p.first_url_key) AS first_url
FROM pages AS p
WHERE p.url_key = $url_key
