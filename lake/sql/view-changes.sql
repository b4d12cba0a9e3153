-- What did each round add, change or remove: one row per event, with the URL it is about?
SELECT o.round, o.day, o.created_at, o.kind, u.url, u.host, u.domain, o.url_key, o.document_key, u.state, o.event_id
FROM outbox AS o
LEFT JOIN urls AS u USING (url_key)
