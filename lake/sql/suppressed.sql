-- Which hosts, domains and URLs are held back now, since when and why?
SELECT kind, pattern, reason, requested_at FROM suppressed ORDER BY kind, pattern
