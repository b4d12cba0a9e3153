"""What a round learnt, folded into what was known: visits, discovered URLs, states, the guard over hosts."""
