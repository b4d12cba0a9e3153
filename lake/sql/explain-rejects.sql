-- What was refused or dropped on a URL's host ($host)?
SELECT * FROM rejects WHERE host = $host ORDER BY round, stage, reason
