-- What did a round ($round) add, change and remove?
SELECT kind, count(*) AS documents FROM outbox WHERE round = $round GROUP BY kind ORDER BY kind
