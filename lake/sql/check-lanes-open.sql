-- Which requests were open at their host beside more others than it may have open at once?
-- By the settings they were made under ($lanes) it may have one, or as many as the operator says; beside a request that
-- knew of a Crawl-delay ($delays) none.
WITH lanes AS (
    SELECT unnest(from_json($lanes, '[{"policy": "VARCHAR", "host": "VARCHAR", "most": "INTEGER"}]'), recursive := true)
),
delays AS (
    SELECT unnest(from_json($delays, '[{
        "policy": "VARCHAR", "origin": "VARCHAR", "version": "VARCHAR", "delay": "DOUBLE"
    }]'), recursive := true)
),
asked AS (
    SELECT
        f.host, f.lane, f.round, f.kind, f.url, f.started_at, f.finished_at,
        coalesce(l.most, 1) AS allowed,
        (coalesce(d.delay, 0) > 0)::INTEGER AS alone
    FROM fetches AS f
    LEFT JOIN lanes AS l ON l.policy = f.policy_version AND l.host = f.host
    LEFT JOIN delays AS d ON d.policy = f.policy_version AND d.origin = f.origin AND d.version = f.robots_version
),
moves AS (
    SELECT *, started_at AS moment, 1 AS move FROM asked
    UNION ALL
    SELECT *, finished_at, -1 FROM asked
),
counted AS (
    SELECT *, sum(move) OVER earlier AS open_then, sum(move * alone) OVER earlier AS alone_then
    FROM moves
    WINDOW earlier AS (
        PARTITION BY host ORDER BY moment, move ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT host, lane, round, kind, url, started_at, open_then, CASE WHEN alone_then > 0 THEN 1 ELSE allowed END AS allowed
FROM counted
WHERE move = 1 AND (open_then > CASE WHEN alone_then > 0 THEN 1 ELSE allowed END OR coalesce(lane, 0) >= allowed)
