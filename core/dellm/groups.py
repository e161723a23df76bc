"""Groups: the verbs of a workspace that belong together, each reached by one name of the memory."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from . import governed
from .answers import Answers
from .arguments import check_whole
from .auditing import Audit
from .checkpoints import Checkpoints
from .conversations import Conversations
from .elsewhere import Elsewhere
from .expiry import Expiry
from .exposures import Exposures
from .facts import Facts
from .governed import Governed
from .guards import Guards
from .holds import Holds
from .items import Items
from .policies import Policies
from .recall import Recall
from .remembered import Remembered
from .summaries import Summaries

if TYPE_CHECKING:
    from .expiry import Forgetter
    from .facts import Keeper
    from .portable import Exporter


class Groups(Recall):
    """What a memory keeps besides plain records, by group."""

    def governed(self, id_: int) -> Governed:
        """Return who made a record, what for, on what basis, its class, its end, and what hangs on it.

        An erased one has a tombstone; one that may not be read now is there as well, without its text.
        Raises NotFound for an id that never was.
        """
        check_whole(id_, "The id")
        with self._engine.reading(self.id) as (tx, scope):
            return governed.of(tx, scope, id_)

    @property
    def policies(self) -> Policies:
        """What this workspace may keep, and who may use it: `policies.current()`, `policies.set()`."""
        return Policies(self._engine, self.id)

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of agent graphs in this workspace; adapters use it."""
        return Checkpoints(self._engine, self.id)

    @cached_property
    def conversations(self) -> Conversations:
        """The threads of messages of this workspace as chat histories keep them; adapters use it."""
        return Conversations(self._engine, self.id)

    @property
    def items(self) -> Items:
        """The values kept by name in this workspace: items of stores, entries of caches."""
        return Items(self._engine, self.id)

    @property
    def elsewhere(self) -> Elsewhere:
        """The copies of this workspace's records that other systems keep; adapters use it."""
        return Elsewhere(self._engine, self.id)

    @property
    def summaries(self) -> Summaries:
        """The summaries of this workspace's threads, which follow what they were made from."""
        return Summaries(self._engine, self.id)

    @property
    def facts(self) -> Facts:
        """The facts of this workspace, with their dates; `facts()` are those that hold now."""
        return Facts(self._engine, cast("Keeper", self))

    @property
    def holds(self) -> Holds:
        """The legal holds of this workspace, which no forget gets past; call it for a list."""
        return Holds(self._engine, self.id)

    @property
    def guards(self) -> Guards:
        """What is kept from coming in again after a forget with a guard; call it for a list."""
        return Guards(self._engine, self.id)

    @property
    def audit(self) -> Audit:
        """The audit chain of this workspace, and how long it is kept; call it for the entries."""
        return Audit(self._engine, self.id)

    @property
    def remembered(self) -> Remembered:
        """What this workspace remembers, about whom and until when; call it for a page of it."""
        return Remembered(self._engine, self.id, cast("Exporter", self))

    @property
    def expiry(self) -> Expiry:
        """What of this workspace expires, and the sweep that forgets it."""
        return Expiry(self._engine, self.id, cast("Forgetter", self))

    @property
    def exposures(self) -> Exposures:
        """What outside models and embedders were sent of this workspace; call it with ids, or without."""
        return Exposures(self._engine, self.id)

    @property
    def answers(self) -> Answers:
        """The cached answers of this workspace: given again to the same question, or one that means it."""
        return Answers(self._engine, self.id)
