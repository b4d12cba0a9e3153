"""What a user would check for himself: real commands, real processes, real sites on loopback."""
