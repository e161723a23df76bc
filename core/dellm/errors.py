"""Every error the library raises: one root, and a leaf for each thing a caller can act on.

Each message says what happened, what is unchanged, and what to do next. No message carries memory
content (invariant I7): ids, names of tables and options, counts, never text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class DellmError(Exception):
    """Root of every error raised by this library."""

    unchanged: ClassVar[str] = "Nothing was changed."
    remedy: ClassVar[str] = ""

    def __init__(
        self, what: str, *, remedy: str | None = None, unchanged: str | None = None
    ) -> None:
        """Join what happened, what is unchanged and what to do into one message."""
        self.what = what
        self.todo = self.remedy if remedy is None else remedy
        left = self.unchanged if unchanged is None else unchanged
        super().__init__(" ".join(part for part in (what, left, self.todo) if part))


class NotFound(DellmError):
    """An id, thread, receipt or workspace that this workspace never had."""

    remedy = "Check the id and the workspace."


class ContextForgotten(DellmError):
    """A write named a record as its context that is no longer there to be used."""

    remedy = "Build the context again and ask the model again."


class CredentialRefused(DellmError):
    """What was to be stored holds a credential, and the memory was opened to refuse those."""

    remedy = "Leave the credential out, or open the memory with another credentials= policy."


class SelectorError(DellmError):
    """A selector that is empty, blank, vague, contradictory, or that takes everything."""

    remedy = "Name what is to go more exactly, or say everything=True."


class NothingMatched(DellmError):
    """A forget whose selector matches no record."""

    remedy = "Look at plan(...) or scan(...) first; a receipt is only written for what was erased."


class PreviewRequired(DellmError):
    """A selector that guesses (meaning, description) was given to forget without a plan."""

    remedy = "Call plan(...) with it, look at the plan, then forget(plan)."


class PlanChanged(DellmError):
    """The memory moved between the plan and its execution, so the plan no longer says what goes."""

    remedy = "Make a new plan, look at it, and forget that one."


class InvalidInput(DellmError):
    """An argument of the wrong type, size or spelling."""

    remedy = "Correct the argument."


class PolicyError(InvalidInput):
    """A policy that cannot be read; `line` is that of the mistake, None where it is in no text."""

    remedy = "Correct the policy; docs/policy.md and data/policy.toml show its form."

    def __init__(self, what: str, *, line: int | None = None) -> None:
        """Keep the line of the mistake."""
        super().__init__(what)
        self.line = line


class PolicyRefused(DellmError):
    """The workspace's policy does not allow what was asked; `ids` are the records it is about."""

    remedy = "Ask as somebody who may, or have the workspace's policy changed."

    def __init__(self, what: str, *, ids: Sequence[int] = ()) -> None:
        """Keep which records it is about."""
        super().__init__(what)
        self.ids = tuple(ids)


class HeldRecord(DellmError):
    """A legal hold keeps what was to be erased or put right; `ids` are the records."""

    remedy = "Release the hold first: memory.holds() lists them."

    def __init__(self, what: str, *, ids: Sequence[int] = ()) -> None:
        """Keep which records it is about."""
        super().__init__(what)
        self.ids = tuple(ids)


class RestoreCheckNeeded(DellmError):
    """The database is older than its journal: what was forgotten since may be there again."""

    remedy = "Run memory.restore_check() or `dellm restore-check JOURNAL`, then try again."


class EmbedderError(DellmError):
    """Search by meaning is not possible: no embedder, a wrong answer from it, or another model's vectors."""

    remedy = 'Pass embedder="local", embedder="openai:MODEL" or an object, or search by keyword.'


class DerivationError(DellmError):
    """The function of a derivation failed, or made no text."""

    remedy = "Look into the function; its own error is not passed on, since it may hold content."


class ModelError(DellmError):
    """A language model or its endpoint did not answer as it must."""

    remedy = "Check the endpoint, the key and the model's name, then try again."


class WeightsError(DellmError):
    """Model weights are missing, or are not the files that were pinned."""

    remedy = "Run `dellm models install minilm smollm2`, or pass a folder that holds the files."


class StorageError(DellmError):
    """The database refused or broke off: what was not committed is not there."""

    unchanged = "The transaction was rolled back; nothing was changed."
    remedy = "Check the database and try again."


class DatabaseClosed(StorageError):
    """The memory was used after close()."""

    unchanged = "Nothing was changed."
    remedy = "Open it again with Memory.open(...)."


class SchemaError(StorageError):
    """The file or database is not one of ours, or was written by a newer version."""

    unchanged = "Nothing was changed."
    remedy = "Check the path, or upgrade dellm."


class UnsupportedHere(DellmError):
    """A capability that the chosen database does not have."""

    remedy = "Use the other database for it."
