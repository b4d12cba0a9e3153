-- How many URLs wait for another attempt, by the outcome of the last one?
SELECT last_outcome, count(*) AS retry_queue_depth, min(next_fetch_at) AS next_retry
FROM urls
WHERE state = 'FAILED_RETRYABLE'
GROUP BY last_outcome
ORDER BY retry_queue_depth DESC, last_outcome
