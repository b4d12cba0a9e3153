-- Which hosts did a round ($round) ask, what came of their URLs, and at what pace?
-- To be asked of that round's own snapshot. asked, fetched, redirected and failed count URLs of any kind, hops too, as
-- `report-funnel` and `report-fates` do, so they add up to those; requests, bytes and times are of all requests that went
-- to the host, those for robots.txt (`robots`) and second tries too. seconds: from the first request to the end of the last.
WITH urls AS (
    SELECT
        host,
        count(*) AS asked,
        count(*) FILTER (last_outcome IN ('OK', 'NOT_MODIFIED', 'UNSUPPORTED_TYPE', 'PARSE_FAILED')) AS fetched,
        count(*) FILTER (last_outcome = 'REDIRECT') AS redirected
    FROM seen
    WHERE round = $round AND coalesce(visited_round, round) = $round
        AND last_outcome NOT IN ('ROBOTS_DENIED', 'ROBOTS_UNREACHABLE', 'EGRESS_DENIED', 'SCOPE_DENIED', 'SUPPRESSED')
    GROUP BY host
),
sent AS (
    SELECT
        host, count(*) AS requests, count(*) FILTER (kind = 'robots') AS robots, sum(wire_bytes)::BIGINT AS wire_bytes,
        avg(total_ms) AS mean_ms, (epoch_us(max(finished_at)) - epoch_us(min(started_at))) / 1e6 AS seconds
    FROM fetches
    WHERE round = $round
    GROUP BY host
)
SELECT
    coalesce(s.host, u.host) AS host,
    coalesce(u.asked, 0) AS asked,
    coalesce(u.fetched, 0) AS fetched,
    coalesce(u.redirected, 0) AS redirected,
    coalesce(u.asked - u.fetched - u.redirected, 0) AS failed,
    coalesce(s.requests, 0) AS requests,
    coalesce(s.robots, 0) AS robots,
    s.wire_bytes, s.mean_ms, s.seconds
FROM sent AS s
FULL JOIN urls AS u ON u.host = s.host
ORDER BY requests DESC, host
