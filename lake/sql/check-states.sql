-- Which URLs are in a state that is none?
SELECT url_key, state, round
FROM seen
WHERE state NOT IN ('DISCOVERED', 'FETCHED', 'FAILED_RETRYABLE', 'BLOCKED', 'QUARANTINED', 'GONE', 'TERMINAL')
