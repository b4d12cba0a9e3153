-- Which blocked or quarantined URLs may be let through before their time: the rule that stopped them changed, or grew old?
-- Robots: the newest copy of the origin is another one, or no longer valid. Anything else: the settings ($policy_version).
-- So are those whose content nobody read, of a type that is read by now ($types).
WITH copies AS (
    SELECT r.origin, r.version, r.valid_until
    FROM robots AS r
    ANTI JOIN robots AS n ON n.origin = r.origin AND (n.round, n.fetched_at) > (r.round, r.fetched_at)
)
SELECT
    u.url_key, u.url, u.origin, u.host, u.domain, u.state, u.last_outcome, u.robots_version, u.policy_version,
    u.tier, u.score, u.eligible_since, u.next_fetch_at, u.kind, u.changefreq, u.sitemap_priority
FROM urls AS u
LEFT JOIN copies AS c ON c.origin = u.origin
WHERE NOT u.due AND NOT u.paused
    AND (
        u.state IN ('BLOCKED', 'QUARANTINED')
        OR (u.state = 'FETCHED' AND u.reason = 'unsupported_type' AND list_contains($types, u.sniffed_type))
    )
    AND CASE
        WHEN u.last_outcome = 'ROBOTS_DENIED'
            THEN c.version IS DISTINCT FROM u.robots_version OR c.valid_until <= getvariable('planning_now')
        ELSE u.policy_version <> $policy_version
    END
ORDER BY u.url_key
