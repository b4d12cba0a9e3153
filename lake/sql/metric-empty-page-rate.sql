-- What share of the pages has a text below 100 characters? (target: below 2 %)
SELECT count(*) AS pages, count(*) FILTER (text_chars < 100) / nullif(count(*), 0) AS empty_page_rate FROM pages
