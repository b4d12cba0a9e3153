-- How are fetches shared between small and large hosts? A class is a power of ten of known URLs.
WITH sizes AS (SELECT host, floor(log10(count(*)))::INTEGER AS class FROM urls GROUP BY host)
SELECT
    class, count(DISTINCT host) AS hosts, count(f.url_key) AS fetches,
    count(f.url_key) / nullif(sum(count(f.url_key)) OVER (), 0) AS share
FROM sizes
LEFT JOIN (SELECT host, url_key FROM fetches WHERE kind = 'page') AS f USING (host)
GROUP BY class
ORDER BY class
