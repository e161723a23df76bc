"""The policy of a workspace: the one its memory was opened with, or its own. `memory.policies`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from . import governing, ledger, storing
from .arguments import check_choice
from .engine import Engine
from .errors import InvalidInput, PolicyRefused
from .policy import Policy, may_act
from .policy_values import By, by_of

ACTIONS = ("forget", "correct", "hold", "export")


class Policies:
    """The policy that holds in one workspace. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.policies instead."""
        self._engine = engine
        self.workspace = workspace

    def current(self) -> Policy:
        """Return the policy that holds here: the workspace's own, the memory's, or what ships."""
        with self._engine.reading(self.workspace) as (tx, scope):
            return governing.current(tx, scope)

    def set(self, policy: Policy | str | Path | None) -> None:
        """Give the workspace a policy of its own, for every process that opens it; None takes it away.

        It decides on what is stored, read, given out and erased from now on; what is stored keeps the
        end it has. A path is read as Policy.load does. The audit chain keeps its digest. Raises
        PolicyError, InvalidInput.
        """
        table = None if policy is None else chosen(policy).to_table()
        text = None if table is None else json.dumps(table, sort_keys=True)
        digest = None if text is None else hashlib.sha256(text.encode()).hexdigest()
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            storing.lock(tx, scope.ws)
            tx.run(
                "update workspace set policy_text = :text, version = version + 1, "
                "generation = generation + 1, "
                "policy = case when cast(:text as text) is null then 0 else version + 1 end, "
                "memory_off = :off "
                "where ws = :ws",
                ws=scope.ws,
                text=text,
                off=int(table is not None and not table["memory"]),
            )
            at = self._engine.options.clock()
            ledger.append(tx, scope.ws, "policy", {"policy": digest}, at)

    def require(self, action: str, by: By | str = "human") -> None:
        """Raise PolicyRefused where those who ask may not ask for this; the audit chain then says so.

        `action` is one of ACTIONS. `by` is who asks, of governance.ASKERS: what comes out of a tool,
        a document or a model never may, whatever the policy. Raises InvalidInput.
        """
        check_choice(action, ACTIONS, "action=")
        asker = asked(self._engine, by)
        with self._engine.reading(self.workspace):  # a closed memory says so
            decided = may_act(asker)
        if not decided:
            refused(self._engine, self.workspace, action, asker, [])
        decided.require()


def asked(engine: Engine, by: By | str | None) -> By:
    """Return who asks, in the role that the memory acts in where they name none."""
    found = by_of("human" if by is None else by)
    if found.role is not None or engine.actor is None:
        return found
    return replace(found, role=engine.actor.role)


def refused(engine: Engine, workspace: str, action: str, by: By, ids: Sequence[int]) -> None:
    """Have the audit chain say who was refused what, and of which records; no more of it."""
    body = {"action": action, "by": by.who, "ids": sorted(ids)}
    with engine.writing(workspace, durable=True) as (tx, scope):
        storing.lock(tx, scope.ws)
        ledger.append(tx, scope.ws, "refused", body, engine.options.clock())


@contextmanager
def refusals(engine: Engine, workspace: str, action: str, by: By) -> Iterator[None]:
    """Have the audit chain say when what is done inside is refused."""
    try:
        yield
    except PolicyRefused as error:
        refused(engine, workspace, action, by, error.ids)
        raise


def chosen(policy: Policy | str | Path) -> Policy:
    """Return a policy as it is, or as the file at a path says. Raises PolicyError, InvalidInput."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str | Path):
        raise InvalidInput("policy= is neither a Policy nor the path of one.")
    return Policy.load(policy)
