"""The data sets: each loader takes a path, knows the official shape, and checks the counts."""
