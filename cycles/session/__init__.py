"""A lake in the hands of a command: opened, held by one driver, a round pinned, its work area, the clock."""
