-- What became of every URL that a round ($round) planned, and of those that redirects led it to (hops)?
-- To be asked of that round's own snapshot: later rounds replace its rows of `seen`. planned = sum(urls - hops);
-- asked = parsed + unparsed + redirected + failed; fetched (an answer confirmed or brought content) = parsed + unparsed.
WITH moment AS (SELECT max(now) AS now FROM rounds WHERE round = $round AND kind = 'round'),
planned AS (SELECT url_key, host FROM frontier WHERE round = $round AND position >= 0),
visited AS (SELECT s.*, m.now FROM seen AS s, moment AS m WHERE s.round = $round
    AND coalesce(s.visited_round, s.round) = $round AND s.last_outcome IS NOT NULL),
carried AS (
    SELECT host, arg_max(reason, count) AS reason
    FROM rejects
    WHERE round = $round AND stage = 'fetch'
    GROUP BY host
),
told AS (
    SELECT
        v.url_key IS NOT NULL AND p.url_key IS NULL AS is_hop,
        CASE
            WHEN v.url_key IS NULL THEN 'carried'
            WHEN v.last_outcome IN (
                'ROBOTS_DENIED', 'ROBOTS_UNREACHABLE', 'EGRESS_DENIED', 'SCOPE_DENIED', 'SUPPRESSED'
            ) THEN 'skipped'
            WHEN v.last_outcome = 'REDIRECT' THEN 'redirected'
            WHEN v.last_outcome NOT IN ('OK', 'NOT_MODIFIED', 'UNSUPPORTED_TYPE', 'PARSE_FAILED') THEN 'failed'
            WHEN v.last_outcome = 'OK' AND v.parsed_at = v.now THEN 'parsed'
            ELSE 'unparsed'
        END AS fate,
        CASE v.last_outcome
            WHEN 'NOT_MODIFIED' THEN 'not_modified'
            WHEN 'PARSE_FAILED' THEN 'parse_failed'
            WHEN 'UNSUPPORTED_TYPE' THEN 'not_html'
            ELSE CASE
                WHEN v.http_status <> 200 THEN 'no_content'
                WHEN v.first_fetched_at = v.now OR v.last_changed_at = v.now THEN 'not_html'
                ELSE 'same_content'
            END
        END AS unparsed,
        v.last_outcome,
        coalesce(c.reason, 'unknown') AS carried
    FROM planned AS p
    FULL JOIN visited AS v USING (url_key)
    LEFT JOIN carried AS c ON c.host = p.host
)
SELECT fate, reason, count(*) AS urls, count(*) FILTER (is_hop) AS hops
FROM (
    SELECT
        fate,
        is_hop,
        CASE fate WHEN 'carried' THEN carried WHEN 'unparsed' THEN unparsed WHEN 'parsed' THEN NULL ELSE last_outcome END
            AS reason
    FROM told
)
GROUP BY fate, reason
ORDER BY list_position(['parsed', 'unparsed', 'redirected', 'failed', 'skipped', 'carried'], fate), urls DESC, reason
