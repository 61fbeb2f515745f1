"""The one place where settings become objects."""
