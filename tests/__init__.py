"""Tests, at the same paths as what they test; `tests.web` is a web to crawl."""
