-- What is the newest robots copy of each of these origins ($origins)?
SELECT r.*
FROM robots AS r
ANTI JOIN robots AS n ON n.origin = r.origin AND (n.round, n.fetched_at) > (r.round, r.fetched_at)
WHERE r.origin IN (SELECT unnest($origins::VARCHAR[]))
ORDER BY origin
