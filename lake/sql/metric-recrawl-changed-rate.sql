-- What share of the checks of known pages found a change? (target: above 20 %)
SELECT
    sum(greatest(crawl_count - 1, 0))::BIGINT AS checks,
    sum(change_count)::BIGINT AS changes,
    sum(change_count) / nullif(sum(greatest(crawl_count - 1, 0)), 0) AS recrawl_changed_rate
FROM urls
