-- Which rounds were committed by an older driver than the one before them?
SELECT *
FROM (
    SELECT round, kind, fence, committed_at, max(fence) OVER (
        ORDER BY committed_at, round, kind ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS fence_before
    FROM rounds
)
WHERE fence < fence_before
