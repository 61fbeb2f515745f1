"""The doctor's checks, one file a subject; each reads a census and yields findings."""
