-- How many URLs are due at the planning time and not held back, and on how many hosts?
SELECT count(*) AS urls, count(DISTINCT host) AS hosts FROM urls WHERE due AND NOT paused
