-- In which languages are the pages, by their own word or by their looks (`language_source`)?
SELECT
    lower(split_part(language, '-', 1)) AS language, count(*) AS pages,
    count(*) / sum(count(*)) OVER () AS share
FROM pages
GROUP BY 1
ORDER BY pages DESC, 1
