-- What was predicted for a round ($round), and what happened?
WITH fetching AS (
    SELECT
        count(*) AS requests,
        count(*) FILTER (kind <> 'robots') AS pages,
        count(DISTINCT host) AS hosts,
        (epoch_us(max(finished_at)) - epoch_us(min(started_at))) / 1e6 AS seconds
    FROM fetches
    WHERE round = $round
),
planned AS (
    SELECT
        count(*) FILTER (position >= 0) AS urls,
        count(DISTINCT host) FILTER (position >= 0) AS hosts,
        max(predicted_start_ms) / 1e3 AS last_start_s,
        sum(count) FILTER (position < 0)::BIGINT AS cut
    FROM frontier
    WHERE round = $round
)
SELECT
    r.round, r.now, r.window_s, r.plan, r.actual,
    p.urls AS planned_urls, p.hosts AS planned_hosts, p.last_start_s AS predicted_last_start_s,
    coalesce(p.cut, 0) AS cut_urls, f.requests, f.pages, f.hosts AS asked_hosts, f.seconds AS fetching_s
FROM rounds AS r, planned AS p, fetching AS f
WHERE r.round = $round AND r.kind = 'round'
