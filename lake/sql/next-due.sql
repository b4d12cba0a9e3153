-- When is the next URL due that is not held back? Null: never.
SELECT min(next_fetch_at) AS next_due
FROM urls
WHERE NOT paused
