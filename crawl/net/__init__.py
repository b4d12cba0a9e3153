"""The wire: names, addresses, HTTP over libcurl. Knows no host's clock, no robots.txt and no page."""
