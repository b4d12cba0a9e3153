-- How many URLs (sitemaps and feeds as well as pages) did each round plan, ask (attempted) and fetch, and how many texts and events came of it?
-- Fetched: an answer confirmed or brought content, which a redirect does not.
WITH planned AS (SELECT round, count(*) AS planned FROM frontier WHERE position >= 0 GROUP BY round),
asked AS (
    SELECT
        round,
        count(DISTINCT url_key) AS attempted,
        count(DISTINCT url_key) FILTER (outcome IN ('OK', 'NOT_MODIFIED', 'UNSUPPORTED_TYPE')) AS fetched
    FROM fetches
    WHERE kind <> 'robots' AND outcome <> 'EGRESS_DENIED'
    GROUP BY round
),
stored AS (SELECT round, count(*) AS new_texts FROM documents GROUP BY round),
ready AS (SELECT round, count(*) AS events FROM outbox GROUP BY round)
SELECT
    round, coalesce(planned, 0) AS planned, coalesce(attempted, 0) AS attempted, coalesce(fetched, 0) AS fetched,
    coalesce(new_texts, 0) AS new_texts, coalesce(events, 0) AS events
FROM planned
FULL JOIN asked USING (round)
FULL JOIN stored USING (round)
FULL JOIN ready USING (round)
ORDER BY round
