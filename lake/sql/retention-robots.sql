-- Which robots copies fetched before $since are not the newest of their origin?
SELECT origin, round
FROM robots AS r
SEMI JOIN robots AS n ON n.origin = r.origin AND n.round > r.round
WHERE fetched_at < $since
