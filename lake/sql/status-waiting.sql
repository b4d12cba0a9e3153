-- What waits for the next round: accepted seeds not yet known, and links of rounds not yet merged (after $merged)?
SELECT
    (
        SELECT count(DISTINCT url_key) FROM seeds ANTI JOIN seen USING (url_key) WHERE verdict = 'accepted'
    ) AS seeds,
    (SELECT count(*) FROM links WHERE admitted AND round > $merged) AS links,
    (SELECT count(DISTINCT round) FROM links WHERE admitted AND round > $merged) AS link_rounds
