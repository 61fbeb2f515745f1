"""Training: a trainer that yields reports, its settings, and what keeps a run safe. Knows a loss function, no task."""
