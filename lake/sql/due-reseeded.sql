-- Which known URLs has somebody given as a seed again since a round last decided about them, and as what (`said`)?
-- A round that was opened (real time) after a seed of a time yet to come in planning knew of it: it counts at its time.
-- Up to $opened, when the round at hand was opened. Some of them are due anyway (`due`).
-- Who says sitemap or feed means it; page is also what is said by default, so it tells only of what is no list.
WITH given AS (
    SELECT url_key, added_at, kind
    FROM (
        SELECT *, row_number() OVER (PARTITION BY url_key ORDER BY added_at DESC, kind DESC, url) AS place
        FROM seeds
        WHERE verdict = 'accepted'
    )
    WHERE place = 1
),
decided AS (
    SELECT round, max(now) AS now, max(opened_at) AS opened_at
    FROM rounds
    WHERE kind = 'round'
    GROUP BY round
)
SELECT
    u.url_key, u.url, u.origin, u.host, u.domain, u.state, u.last_outcome, u.robots_version, u.policy_version,
    u.tier, u.score, u.eligible_since, u.next_fetch_at, u.kind,
    u.changefreq, u.sitemap_priority, u.due,
    CASE WHEN g.kind IN ('sitemap', 'feed') OR u.state = 'QUARANTINED' THEN g.kind ELSE u.kind END AS said
FROM urls AS u
JOIN given AS g ON g.url_key = u.url_key
LEFT JOIN decided AS d ON d.round = coalesce(u.visited_round, u.round)
WHERE NOT u.paused
    AND (
        d.now IS NULL
        OR (g.added_at > d.now AND g.added_at <= getvariable('planning_now'))
        OR (g.added_at > greatest(d.now, d.opened_at) AND g.added_at <= $opened::TIMESTAMPTZ)
    )
ORDER BY u.url_key
