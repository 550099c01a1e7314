"""Finding texts by meaning and by words: one index, for memory banks and for examples alike."""
