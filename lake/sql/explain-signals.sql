-- How many links lead to a URL ($url_key), and what is the shortest way to it?
SELECT sum(in_links)::BIGINT AS in_links, min(best_depth) AS best_depth, max(best_score) AS best_score
FROM signals
WHERE url_key = $url_key
HAVING count(*) > 0
