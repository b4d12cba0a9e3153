-- At which planning time was each round opened?
SELECT round, now, opened_at, committed_at FROM rounds WHERE kind = 'round' ORDER BY round
