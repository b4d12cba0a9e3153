-- How is each host doing: its newest state, whether it is held back, its URLs and its requests in the newest round?
WITH newest AS (
    SELECT h.*
    FROM hosts AS h
    ANTI JOIN hosts AS n ON n.host_key = h.host_key AND n.round > h.round
),
known AS (
    SELECT
        host,
        count(*) AS urls,
        count(*) FILTER (state = 'DISCOVERED') AS never_fetched,
        count(*) FILTER (state = 'FETCHED') AS live,
        count(*) FILTER (state IN ('GONE', 'TERMINAL')) AS given_up,
        count(*) FILTER (due) AS due
    FROM urls
    GROUP BY host
),
asked AS (
    SELECT
        host,
        count(*) AS requests,
        count(*) FILTER (outcome NOT IN ('OK', 'NOT_MODIFIED', 'REDIRECT')) AS failures,
        count(*) FILTER (status IN (429, 503)) AS pushed_back,
        avg(total_ms) AS mean_ms,
        max(finished_at) AS last_request_at
    FROM fetches
    WHERE round = (SELECT max(round) FROM fetches)
    GROUP BY host
)
SELECT
    h.* EXCLUDE (round),
    h.host IN (SELECT pattern FROM suppressed) OR h.domain IN (SELECT pattern FROM suppressed) AS paused,
    coalesce(k.urls, 0) AS urls,
    coalesce(k.never_fetched, 0) AS never_fetched,
    coalesce(k.live, 0) AS live,
    coalesce(k.given_up, 0) AS given_up,
    coalesce(k.due, 0) AS due,
    coalesce(a.requests, 0) AS requests,
    coalesce(a.failures, 0) AS failures,
    coalesce(a.pushed_back, 0) AS pushed_back,
    a.mean_ms,
    a.last_request_at,
    h.round
FROM newest AS h
LEFT JOIN known AS k USING (host)
LEFT JOIN asked AS a USING (host)
