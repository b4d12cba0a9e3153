-- How many URLs did a sitemap, index or feed ($url_key) name, by the rounds that read it anew?
SELECT round, count(DISTINCT target_key) AS urls
FROM links
WHERE source_key = $url_key AND via IN ('sitemap', 'feed')
GROUP BY round
ORDER BY round
