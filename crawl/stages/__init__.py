"""The stages of a round: one file a stage, one public verb each.

Rows come in as arguments and go out as results. Time, chance and settings are arguments too, so that a stage
run again gives the same rows. No stage imports another: what one hands to the next is a table of the lake.
"""
