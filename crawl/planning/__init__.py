"""Rules of a plan: which due URLs a window holds, by host clocks and addresses, in which group and order."""
