-- Which document does each URL have now? One row per URL whose text is in the lake, or was withheld.
SELECT
    u.url_key, u.url, u.host, u.domain, u.depth, u.state, u.http_status, u.first_fetched_at, u.last_checked_at,
    u.last_changed_at, u.next_fetch_at, u.importance, u.tier, u.content_hash, u.content_length,
    d.document_key, d.title, d.description, d.language, d.language_source, d.charset, d.content_type,
    d.sniffed_type, d.metadata, d.last_modified, d.canonical_hint, d.robots_directives, d.noindex, d.nofollow,
    d.noarchive, u.unavailable_after, u.withheld, d.text_chars, d.html_bytes, d.truncated, d.link_count,
    d.text_ratio, d.script_count, d.script_chars, d.script_signs, d.needs_rendering,
    d.first_url_key, d.text, d.day AS document_day, d.round AS document_round, u.round
FROM urls AS u
JOIN (
    SELECT d.*
    FROM documents AS d
    -- a text stored in two rounds counts once, as first stored
    ANTI JOIN documents AS e
        ON e.document_key = d.document_key
        AND (e.round < d.round OR (e.round = d.round AND e.first_url_key < d.first_url_key))
) AS d USING (document_key)
