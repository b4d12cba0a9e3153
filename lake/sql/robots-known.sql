-- What is known of the newest robots copy of each of these origins ($origins), its text apart?
SELECT r.origin, r.version, r.valid_until, r.how, r.elsewhere, length(r.text) AS characters
FROM robots AS r
ANTI JOIN robots AS n ON n.origin = r.origin AND (n.round, n.fetched_at) > (r.round, r.fetched_at)
WHERE r.origin IN (SELECT unnest($origins::VARCHAR[]))
ORDER BY origin
