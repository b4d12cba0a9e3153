-- Which document does a URL ($url_key) have now?
SELECT * EXCLUDE (text) FROM pages WHERE url_key = $url_key
