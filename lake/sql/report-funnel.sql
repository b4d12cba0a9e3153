-- How many URLs of a round ($round) were planned, attempted, fetched, parsed, stored and made ready for an index?
-- To be asked of that round's own snapshot: later rounds replace its rows of `seen`.
WITH moment AS (SELECT max(now) AS now FROM rounds WHERE round = $round AND kind = 'round'),
asked AS (
    SELECT url_key, bool_or(outcome IN ('OK', 'NOT_MODIFIED')) AS fetched
    FROM fetches
    WHERE round = $round AND kind = 'page'
    GROUP BY url_key
),
known AS (SELECT s.*, moment.now FROM seen AS s, moment WHERE s.round = $round)
SELECT
    (SELECT count(*) FROM frontier WHERE round = $round AND position >= 0) AS planned,
    (SELECT count(*) FROM asked) AS attempted,
    (SELECT count(*) FROM asked WHERE fetched) AS fetched,
    (SELECT count(*) FROM known WHERE parsed_at = now) AS parsed,
    (SELECT count(*) FROM known WHERE stored_at = now) AS stored,
    (SELECT count(*) FROM known WHERE index_ready_at = now) AS index_ready,
    (SELECT count(*) FROM known WHERE first_seen_round = $round) AS discovered
