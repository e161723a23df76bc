"""What models are called: "provider/model", by which a record says who made it."""

from __future__ import annotations

import re
from typing import Any

_PROVIDER = re.compile(r"[_-]?(?:llm|like|chat|multi_?modal|responses)$", re.IGNORECASE)


def model_of(said: object) -> str | None:
    """Return "provider/model" of a model as its events describe it, None where they do not name it.

    The provider is what its class is called, "openai" for "openai_llm"; its address is not said.
    """
    if not isinstance(said, dict):
        return None
    name, kind = said.get("model_name"), said.get("class_name")
    if not isinstance(name, str) or not isinstance(kind, str) or not name.strip():
        return None
    return f"{_PROVIDER.sub('', kind).lower().replace('/', '_') or 'unknown'}/{name}"


def named(llm: Any) -> str | None:
    """Return the same of a model itself; None where it does not say."""
    try:
        return model_of({"class_name": llm.class_name(), "model_name": llm.metadata.model_name})
    except Exception:  # noqa: BLE001 - a client's own code: some refuse to describe a model they do not know
        return None
