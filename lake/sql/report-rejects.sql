-- What did a round ($round) refuse or drop, where and why?
SELECT stage, reason, sum(count)::BIGINT AS count, count(DISTINCT host) AS hosts, min(example) AS example
FROM rejects
WHERE round = $round
GROUP BY stage, reason
ORDER BY count DESC, stage, reason
