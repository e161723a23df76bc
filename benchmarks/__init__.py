"""Measurements that are run by hand and in the nightly job; they need data that tests do not."""
