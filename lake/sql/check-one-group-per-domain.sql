-- Which domains were asked by more than one host group in a round?
SELECT round, domain, min("group") AS one, max("group") AS other
FROM fetches
GROUP BY round, domain
HAVING min("group") <> max("group")
