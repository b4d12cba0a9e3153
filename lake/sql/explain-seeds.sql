-- Was a URL ($url_key) given as a seed, when and by whom? A refused one has no key: it is found as it was given
-- ($asked) or by the URL ($url).
SELECT *
FROM seeds
WHERE url_key = $url_key OR (verdict = 'refused' AND url IN ($asked, $url))
ORDER BY added_at
