-- Which URLs that count as gone, or were given up, has somebody given as a seed since a round last decided about them?
WITH given AS (
    SELECT url_key, max(added_at) AS added_at
    FROM seeds
    WHERE verdict = 'accepted'
    GROUP BY url_key
),
decided AS (
    SELECT round, max(now) AS now
    FROM rounds
    WHERE kind = 'round'
    GROUP BY round
)
SELECT
    u.url_key, u.url, u.origin, u.host, u.domain, u.state, u.last_outcome, u.robots_version, u.policy_version,
    u.tier, u.score, u.eligible_since, u.next_fetch_at, u.kind,
    u.changefreq, u.sitemap_priority
FROM urls AS u
JOIN given AS g ON g.url_key = u.url_key
LEFT JOIN decided AS d ON d.round = coalesce(u.visited_round, u.round)
WHERE u.state IN ('GONE', 'TERMINAL') AND NOT u.due AND NOT u.paused AND (d.now IS NULL OR g.added_at > d.now)
ORDER BY u.url_key
