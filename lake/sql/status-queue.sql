-- What waits: due, held back, never fetched, to be retried; since when, and until when?
SELECT
    count(*) AS known,
    count(*) FILTER (due AND NOT paused) AS due,
    count(*) FILTER (paused) AS paused,
    count(*) FILTER (state = 'DISCOVERED') AS never_fetched,
    count(*) FILTER (state = 'FAILED_RETRYABLE') AS to_retry,
    count(DISTINCT host) FILTER (due AND NOT paused) AS due_hosts,
    min(eligible_since) FILTER (due AND NOT paused) AS oldest_eligible,
    min(next_fetch_at) FILTER (NOT paused) AS next_due
FROM urls
