-- Which accepted seeds are not known yet? The last word on each.
SELECT * EXCLUDE (place)
FROM (
    SELECT *, row_number() OVER (PARTITION BY url_key ORDER BY added_at DESC, url) AS place
    FROM seeds
    WHERE verdict = 'accepted'
) AS s
ANTI JOIN seen USING (url_key)
WHERE place = 1
ORDER BY url_key
