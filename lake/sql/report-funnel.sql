-- How many URLs of a round ($round) were planned, attempted (asked), fetched and parsed, and what came of it?
-- To be asked of that round's own snapshot: later rounds replace its rows of `seen`. Fetched: an answer confirmed or
-- brought content, which a redirect does not. `attempted` counts `hops` too, URLs that redirects led to; what became
-- of each URL tells `report-fates`. lists_: those of them that are sitemaps and feeds, not pages; listed: URLs discovered
-- by one. stored: documents confirmed, new or not; index_ready: events written.
WITH moment AS (SELECT max(now) AS now FROM rounds WHERE round = $round AND kind = 'round'),
planned AS (
    SELECT url_key, coalesce(kind, 'page') <> 'page' AS is_list FROM frontier WHERE round = $round AND position >= 0
),
written AS (
    SELECT s.*, m.now, coalesce(s.kind, 'page') <> 'page' AS is_list
    FROM seen AS s, moment AS m
    WHERE s.round = $round
),
asked AS (
    SELECT
        *,
        url_key NOT IN (SELECT url_key FROM planned) AS is_hop,
        last_outcome IN ('OK', 'NOT_MODIFIED', 'UNSUPPORTED_TYPE', 'PARSE_FAILED') AS is_fetched
    FROM written
    WHERE coalesce(visited_round, round) = $round AND last_outcome NOT IN ('ROBOTS_DENIED', 'ROBOTS_UNREACHABLE', 'EGRESS_DENIED', 'SCOPE_DENIED', 'SUPPRESSED')
)
SELECT
    (SELECT count(*) FROM planned) AS planned,
    (SELECT count(*) FROM asked) AS attempted,
    (SELECT count(*) FROM asked WHERE is_hop) AS hops,
    (SELECT count(*) FROM planned WHERE is_list) AS lists_planned,
    (SELECT count(*) FROM asked WHERE is_list) AS lists_asked,
    (SELECT count(*) FROM asked WHERE is_list AND is_fetched) AS lists_fetched,
    (SELECT count(*) FROM asked WHERE is_list AND last_outcome = 'OK' AND parsed_at = now) AS lists_parsed,
    (SELECT count(*) FROM written WHERE first_seen_round = $round AND found_by IN ('sitemap', 'feed')) AS listed,
    (SELECT count(*) FROM asked WHERE is_fetched) AS fetched,
    (SELECT count(*) FROM asked WHERE last_outcome = 'OK' AND parsed_at = now) AS parsed,
    (SELECT count(*) FROM asked WHERE stored_at = now AND is_fetched) AS stored,
    (SELECT count(*) FROM asked WHERE index_ready_at = now) AS index_ready,
    (SELECT count(*) FROM written WHERE first_seen_round = $round) AS discovered
