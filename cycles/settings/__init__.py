"""Settings: `crawl.toml`, the environment and options, checked for sense, as frozen values."""
