"""Tests of `lake`: tables, runs, commits and SQL."""
