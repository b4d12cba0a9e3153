-- What were the last rounds and upkeeps?
SELECT
    round, kind, now, opened_at, committed_at, (epoch_us(committed_at) - epoch_us(opened_at)) / 1e6 AS seconds,
    window_s, fence, driver, policy_version, counts, actual
FROM rounds
ORDER BY committed_at DESC
LIMIT 10
