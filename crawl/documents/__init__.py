"""Bodies of any media type: what they are, which are read, by which reader, and their links as rows."""
