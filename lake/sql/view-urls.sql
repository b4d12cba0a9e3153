-- What is known of every URL now: its newest row, and whether it is due, paused or leased?
-- `state` is the stored state; `status` adds LEASED (in the open round's plan) and ELIGIBLE (due and not held back).
-- A row is newest where no newer run has its key: the large oldest run is on the probing side only.
SELECT
    * EXCLUDE (leased),
    CASE WHEN leased THEN 'LEASED' WHEN due AND NOT paused THEN 'ELIGIBLE' ELSE state END AS status
FROM (
    SELECT
        s.* REPLACE (coalesce(s.kind, 'page') AS kind),
        next_fetch_at <= getvariable('planning_now') AS due,
        host IN (SELECT pattern FROM suppressed)
            OR domain IN (SELECT pattern FROM suppressed)
            OR origin IN (SELECT pattern FROM suppressed)
            OR url IN (SELECT pattern FROM suppressed) AS paused,
        url_key IN (SELECT url_key FROM leased_keys) AS leased
    FROM seen AS s
    ANTI JOIN seen_newer AS n ON n.url_key = s.url_key AND n.round > s.round
)
