-- What share of the pages links nowhere?
SELECT count(*) AS pages, count(*) FILTER (link_count = 0) / nullif(count(*), 0) AS pages_without_outlinks
FROM pages
