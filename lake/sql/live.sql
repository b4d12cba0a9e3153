-- How many live pages does each of these hosts ($hosts) have?
SELECT host, count(*) AS live
FROM urls
WHERE state = 'FETCHED' AND host IN (SELECT unnest($hosts::VARCHAR[]))
GROUP BY host
ORDER BY host
