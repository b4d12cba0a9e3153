-- Which robots.txt copies with a Crawl-delay let pages be asked, and under which settings?
SELECT DISTINCT f.policy_version, f.origin, r.version, r.text
FROM robots AS r
INNER JOIN fetches AS f ON f.origin = r.origin AND f.robots_version = r.version
WHERE contains(lower(r.text), 'delay')
ORDER BY f.policy_version, f.origin, r.version
