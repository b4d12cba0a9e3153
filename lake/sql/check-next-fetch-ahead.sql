-- Which URLs were due again at the very time of the round that decided them?
-- (A sitemap's word may make it due later.)
SELECT s.url_key, s.url, s.state, s.last_outcome, s.next_fetch_at, r.now, s.round
FROM seen AS s
JOIN rounds AS r ON r.round = coalesce(s.visited_round, s.round) AND r.kind = 'round'
WHERE s.round = coalesce(s.visited_round, s.round) AND s.last_outcome IS NOT NULL AND s.next_fetch_at <= r.now
