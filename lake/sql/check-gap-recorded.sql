-- Which requests record a shorter gap than the one before them demanded? 2 ms are granted to clocks.
-- Demanded: the floor, the factor of its duration, its robots.txt's Crawl-delay ($delays), its Retry-After, and the
-- least back-off after 429 and 503, all by the settings it was made under ($manners). Never taken from what is recorded.
-- The one before: on the same lane, or else the host's last one of an earlier round.
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
demanding AS (
    SELECT
        f.host, f.lane, f.round, f.kind, f.url, f.started_at, f.finished_at, f.required_gap_ms, f.gap_rule,
        greatest(
            m.floor,
            least(m.factor * (epoch_us(f.finished_at) - epoch_us(f.started_at)) / 1e3, m.cap),
            coalesce(d.delay, 0),
            CASE WHEN f.status = 429 OR f.status >= 500 THEN least(coalesce(f.retry_after_ms, 0), m.longest) ELSE 0 END,
            CASE WHEN f.outcome IN ('RATE_LIMITED', 'UNAVAILABLE') THEN m.backoff ELSE 0 END
        ) AS demands_ms
    FROM fetches AS f
    LEFT JOIN manners AS m ON m.policy = f.policy_version
    LEFT JOIN delays AS d ON d.policy = f.policy_version AND d.origin = f.origin AND d.version = f.robots_version
),
spaced AS (
    SELECT
        * EXCLUDE (demands_ms, finished_at),
        coalesce(
            lag(demands_ms) OVER (PARTITION BY host, round, coalesce(lane, 0) ORDER BY started_at, finished_at),
            arg_max(demands_ms, finished_at) OVER (
                PARTITION BY host ORDER BY round RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ) AS demanded_ms
    FROM demanding
)
SELECT * FROM spaced WHERE required_gap_ms < demanded_ms - 2
