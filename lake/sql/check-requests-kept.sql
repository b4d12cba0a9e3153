-- Of which rounds does `fetches` have more or fewer rows than requests were counted?
SELECT r.round, (r.counts ->> '$.requests')::BIGINT AS requests, count(f.round) AS rows
FROM rounds AS r
LEFT JOIN fetches AS f USING (round)
WHERE r.kind = 'round' AND r.round >= (SELECT min(round) FROM fetches)
GROUP BY r.round, r.counts
HAVING count(f.round) <> (r.counts ->> '$.requests')::BIGINT
