"""The experiments of the evaluation, and the data of our own that they need."""
