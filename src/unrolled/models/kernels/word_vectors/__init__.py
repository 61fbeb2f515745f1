"""The update of word2vec: as NumPy, pair by pair, and as machine code that gives the same numbers."""
