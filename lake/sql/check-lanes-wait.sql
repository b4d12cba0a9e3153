-- Which requests on one lane of a host started before a wait was over that was due to all? 2 ms are granted to clocks.
-- Due to all: Crawl-delay ($delays), Retry-After, and the least back-off after 429 and 503, by the settings in force
-- ($manners), from the end of the request that met them, on whichever lane.
WITH manners AS (
    SELECT unnest(from_json($manners, '[{
        "policy": "VARCHAR", "floor": "DOUBLE", "factor": "DOUBLE", "cap": "DOUBLE", "backoff": "DOUBLE",
        "longest": "DOUBLE"
    }]'), recursive := true)
),
delays AS (
    SELECT unnest(from_json($delays, '[{
        "policy": "VARCHAR", "origin": "VARCHAR", "version": "VARCHAR", "delay": "DOUBLE"
    }]'), recursive := true)
),
several AS (
    SELECT DISTINCT host FROM fetches WHERE lane IS NOT NULL
),
asked AS (
    SELECT
        f.host, f.lane, f.round, f.kind, f.url, f.started_at, f.finished_at,
        epoch_us(f.finished_at) / 1e3 + greatest(
            coalesce(d.delay, 0),
            CASE WHEN f.status = 429 OR f.status >= 500 THEN least(coalesce(f.retry_after_ms, 0), m.longest) ELSE 0 END,
            CASE WHEN f.outcome IN ('RATE_LIMITED', 'UNAVAILABLE') THEN m.backoff ELSE 0 END
        ) AS over_ms
    FROM fetches AS f
    SEMI JOIN several USING (host)
    LEFT JOIN manners AS m ON m.policy = f.policy_version
    LEFT JOIN delays AS d ON d.policy = f.policy_version AND d.origin = f.origin AND d.version = f.robots_version
),
moves AS (
    SELECT *, finished_at AS moment, 0 AS starts, over_ms AS told_ms FROM asked
    UNION ALL
    SELECT *, started_at, 1, NULL FROM asked
),
told AS (
    SELECT
        *,
        max(told_ms) OVER (
            PARTITION BY host ORDER BY moment, starts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS until_ms
    FROM moves
)
SELECT host, lane, round, kind, url, started_at, until_ms - epoch_us(started_at) / 1e3 AS early_ms
FROM told
WHERE starts = 1 AND lane IS NOT NULL AND epoch_us(started_at) / 1e3 < until_ms - 2
