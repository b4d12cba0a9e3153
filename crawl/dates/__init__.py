"""Dates as strangers write them: in HTTP headers, in sitemaps, in feeds."""
