"""Tests of `crawl`: values, rules and tools."""
