-- In which states are all URLs after a round ($round), and how many did it move there?
SELECT state, count(*) AS urls, count(*) FILTER (round = $round) AS written_by_round
FROM urls
GROUP BY state
ORDER BY state
