"""Tests of `cycles`: rounds on a cluster, and the commands."""
