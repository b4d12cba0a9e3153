-- Which patterns are held back now: the newest word on each, unless it was withdrawn?
SELECT kind, pattern, reason, requested_at
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY kind, pattern
        ORDER BY greatest(requested_at, coalesce(withdrawn_at, requested_at)) DESC, withdrawn_at DESC NULLS LAST
    ) AS age
    FROM suppressions
)
WHERE age = 1 AND withdrawn_at IS NULL
