-- Which URLs gave content but have neither a text nor a reason for having none?
SELECT url_key, url, fetched_at, last_outcome
FROM urls
WHERE state = 'FETCHED' AND fetched_at IS NOT NULL AND document_key IS NULL
    AND coalesce(kind, 'page') = 'page' AND reason IS NULL AND last_error IS NULL AND redirect_to_key IS NULL
