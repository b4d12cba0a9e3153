-- Was a URL ($url_key) given as a seed, when and by whom?
SELECT * FROM seeds WHERE url_key = $url_key ORDER BY added_at
