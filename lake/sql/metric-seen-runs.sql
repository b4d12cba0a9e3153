-- How many runs does `seen` have, by level, and how many bytes a row?
SELECT
    level, count(DISTINCT (first_round, last_round)) AS runs, count(*) AS files, sum(rows)::BIGINT AS rows,
    sum(size)::BIGINT AS bytes, sum(size) / sum(rows) AS bytes_per_row
FROM files
WHERE table_name = 'seen'
GROUP BY level
ORDER BY level
