-- Which admitted links of rounds already merged (up to $merged) lead to a URL that is not known?
SELECT round, source_key, target_key, target_url
FROM links
ANTI JOIN seen ON seen.url_key = links.target_key
WHERE admitted AND links.round <= $merged
