-- What is known of a URL ($url_key) now?
SELECT * FROM urls WHERE url_key = $url_key
