-- Which events are about a URL that is not known?
SELECT event_id, kind, url_key, round FROM outbox ANTI JOIN seen USING (url_key)
