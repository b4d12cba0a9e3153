"""Tests of the stages of a round."""
