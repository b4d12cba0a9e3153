-- Under which settings were rounds made?
SELECT policy_version, any_value(settings) AS settings
FROM rounds
WHERE kind = 'round'
GROUP BY policy_version
ORDER BY policy_version
