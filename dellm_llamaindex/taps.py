"""Handlers on the framework's root dispatcher: what models were asked and said, and where."""

from __future__ import annotations


def install() -> None:
    """Begin to listen, once per process. Called when memory.py is imported."""
