-- How did the requests of a round ($round) end?
SELECT
    kind, outcome, count(*) AS requests, count(DISTINCT url_key) AS urls, count(DISTINCT host) AS hosts,
    count(*) / sum(count(*)) OVER (PARTITION BY kind) AS share,
    quantile_cont(total_ms, 0.5) AS median_ms, min(reason) AS example_reason
FROM fetches
WHERE round = $round
GROUP BY kind, outcome
ORDER BY kind, requests DESC, outcome
