"""Errors, registries, settings, the step protocol. Imports no torch and no other room."""
