-- How many known URLs, and seeds that no round has taken in yet, are of a host or domain ($host)?
SELECT
    (SELECT count(*) FROM urls WHERE host = $host OR domain = $host) AS urls,
    (
        SELECT count(DISTINCT url_key)
        FROM seeds
        ANTI JOIN seen USING (url_key)
        WHERE verdict = 'accepted' AND (contains(lower(url), '//' || $host) OR contains(lower(url), '.' || $host))
    ) AS seeds
