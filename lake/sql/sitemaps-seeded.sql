-- Which of these sitemaps ($urls) did the operator give as seeds?
SELECT DISTINCT seen.url AS url
FROM seeds
JOIN seen USING (url_key)
WHERE seeds.verdict = 'accepted' AND seeds.kind = 'sitemap' AND seen.url IN (SELECT unnest($urls::VARCHAR[]))
ORDER BY ALL
