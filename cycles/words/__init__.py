"""What people are told: codes, facts and numbers as text, tables and progress. Reads no lake."""
