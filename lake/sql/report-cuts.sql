-- Which URLs did a round ($round) leave out though they were due, by host and reason?
SELECT host, reason, sum(count)::BIGINT AS urls, max(score) AS cut_off_score
FROM frontier
WHERE round = $round AND position < 0
GROUP BY host, reason
ORDER BY urls DESC, host, reason
