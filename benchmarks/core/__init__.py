"""What the core costs next to a bare database doing the same, measured in one run."""
