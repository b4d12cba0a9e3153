"""One module a command of `crawl`: what it asks of the lake, and what it changes."""
