-- Which politeness groups, whose hosts have one clock, were asked by more than one task in a round?
SELECT round, politeness_group, min("group") AS one, max("group") AS other
FROM fetches
WHERE politeness_group IS NOT NULL
GROUP BY round, politeness_group
HAVING min("group") <> max("group")
