-- How large is each table: files, rows, bytes, runs?
SELECT
    table_name,
    count(*) AS files,
    sum(rows)::BIGINT AS rows,
    sum(size)::BIGINT AS bytes,
    count(DISTINCT (level, first_round, last_round)) FILTER (level IS NOT NULL) AS runs
FROM files
GROUP BY table_name
ORDER BY table_name
