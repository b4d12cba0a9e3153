-- What does the lake say of a round ($round) as a whole?
SELECT * FROM rounds WHERE round = $round ORDER BY committed_at
