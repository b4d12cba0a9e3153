-- What does each column of each table and view mean?
SELECT c.table_name, c.column_name, c.data_type AS type, m.meaning
FROM duckdb_columns() AS c
JOIN column_meanings AS m ON m.table_name = c.table_name AND m.column_name = c.column_name
WHERE NOT c.internal
ORDER BY c.table_name, c.column_index
