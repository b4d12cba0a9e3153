-- What is the newest state of each host?
SELECT h.*
FROM hosts AS h
ANTI JOIN hosts AS n ON n.host_key = h.host_key AND n.round > h.round
ORDER BY host_key
