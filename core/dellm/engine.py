"""What every workspace of one open memory shares: the database, the embedder and the options."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from . import audiences, journaling
from .actor import OVERSEER, Actor
from .database import Clock, Database, Scope, Tx, now
from .desk import Standing
from .embedding import Embedder
from .encoding import encode
from .entry import Entering
from .errors import InvalidInput, RestoreCheckNeeded, StorageError
from .journal import Journal
from .listening import Listeners
from .policy import Policy
from .providers import SHIPPED, Providers
from .sequences import Tips

if TYPE_CHECKING:
    from .making import Rebuilder
    from .regenerating import Ask
    from .summarising import Summariser

SCRUB_BELOW = 16 << 20
UNCHECKED = ("refuse", "serve")
YEAR = 365 * 24 * 3600 * 1_000_000
_OPENED = count(1)


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may set when opening a memory.

    `scrub_below`: databases up to this many bytes are physically cleaned as part of a forget.
    `region`: the country whose phone numbers are written without a country code (ISO 3166).
    `repeat_for`: microseconds for which a repeated forget finds its receipt by what was asked.
    `providers`: what outside models and embedders may keep.
    `credentials`: what is done with keys, passwords and the like that come in, of entry.POLICIES.
    `guards`: what is done with what was forgotten under a guard, of entry.GUARDED, and `guard_for`
    how many microseconds a guard lasts; None for ever.
    `journal`: where forgets are written down besides; `unchecked`: whether a workspace whose database
    is older than that is used, of UNCHECKED. `policy`: of workspaces that have none of their own;
    None for the one that ships.
    """

    scrub_below: int = SCRUB_BELOW
    region: str = "US"
    repeat_for: int = 24 * 3600 * 1_000_000
    credentials: str = "redact"
    guards: str = "redact"
    guard_for: int | None = YEAR
    clock: Clock = field(default=now, repr=False)
    providers: Providers = SHIPPED
    journal: Journal | None = field(default=None, repr=False)
    unchecked: str = "refuse"
    policy: Policy | None = field(default=None, repr=False)


class Engine:
    """An open database with its embedder; hands out transactions bound to a workspace and an actor.

    `actor` and `asking` (see Scope) are not shared by what `acting` returns: they alone have slots.
    """

    __slots__ = ("__dict__", "__weakref__", "actor", "asking")

    def __init__(
        self, database: Database, embedder: Embedder | None, options: Options, url: str
    ) -> None:
        self.actor: Actor | None = None
        self.asking: Actor | None = None
        self.database = database
        self.url = url  # without a password
        self.closed = False
        self.root: object = None  # of Memory's making
        self.embedder = embedder
        self.options = options
        self.tips = Tips()
        self.identity = next(_OPENED)
        self.rebuilders: dict[str, Rebuilder] = {}
        self.summarisers: dict[str, Summariser] = {}
        self.regenerator: Ask | None = None
        self.listeners = Listeners()  # of forgets
        self.readers = Listeners()  # who is told what was read
        self.standing: dict[
            str, Standing
        ] = {}  # how workspaces were left by the last write of here
        self.traced: dict[str, int] = {}  # until when contexts of a workspace are traced
        self._old: set[str] = set()  # workspaces whose database is older than the journal
        self._origin: str | None = None
        self._scopes: dict[str, Scope] = {}
        self.entering = Entering(
            options.credentials, options.guards, options.guard_for, options.region, options.policy
        )
        self._guard = threading.Lock()
        self._here = threading.local()  # whether this thread is inside a verb

    @property
    def origin(self) -> str:
        """Which database this is: a number made with it, that a copy of it shares."""
        if self._origin is None:
            with self.database.transaction(Scope("", 0)) as tx:
                row = tx.one("select value from setting where name = 'origin'")
            self._origin = "" if row is None else str(row[0])
        return self._origin

    def acting(self, actor: Actor | None) -> Engine:
        """Return the same engine with transactions on behalf of another actor."""
        return self if actor == self.actor == self.asking else self._twin(actor, actor)

    @property
    def overseeing(self) -> Engine:
        """The same engine for a forget: its actor asks for it, and all that was made of it goes."""
        return self._twin(OVERSEER, self.asking)

    def _twin(self, actor: Actor | None, asking: Actor | None) -> Engine:
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__
        other.actor, other.asking = actor, asking
        return other

    def close(self) -> None:
        """Release what the database holds open. Safe to repeat."""
        self.closed = True
        self.database.close()

    def scope(self, name: str, *, create: bool = False) -> Scope:
        """Return the workspace's scope; number 0 when it has never been written to.

        Raises InvalidInput for a name that is blank.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("The workspace's name is empty.")
        with self._guard:
            known = self._scopes.get(name)
        if known is None:
            known = self._find(name)
            if known is None and create:
                known = self._create(name)
            if known is None:
                return Scope(name, 0)
            self._compare(known)
            with self._guard:
                self._scopes[name] = known
        return known

    def _compare(self, scope: Scope) -> None:
        """Note whether the workspace's database is older than the journal."""
        journal = self.options.journal
        if journal is not None and journaling.notice(self.database, journal, scope):
            self._old.add(scope.name)

    def checked(self, name: str) -> None:
        """Say that a workspace has nothing any more that its journal says is gone."""
        self._old.discard(name)

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Let this thread use workspaces that are older than their journal."""
        self._here.checking = True
        try:
            yield
        finally:
            self._here.checking = False

    def _find(self, name: str) -> Scope | None:
        with self.database.transaction(Scope(name, 0)) as tx:
            row = tx.one("select ws, secret from workspace where name = :name", name=encode(name))
        return (
            None
            if row is None
            else Scope(name, row[0], bytes(row[1]), self.entering, self.options.journal)
        )

    def _create(self, name: str) -> Scope | None:
        with self.database.transaction(Scope(name, 0), write=True) as tx:
            tx.run(
                "insert into workspace(name, secret, created_at, concerns) "
                "values (:name, :secret, :at, 1) on conflict (name) do nothing",
                name=encode(name),
                secret=secrets.token_bytes(32),
                at=self.options.clock(),
            )
        return self._find(name)

    @contextmanager
    def reading(self, name: str, *, owner: bool = False) -> Iterator[tuple[Tx, Scope]]:
        """Open a read snapshot of the workspace."""
        with self._alone():
            scope = self._usable(name)
            with self.database.transaction(scope, owner=owner) as tx:
                yield tx, scope

    @contextmanager
    def writing(self, name: str, *, durable: bool = False) -> Iterator[tuple[Tx, Scope]]:
        """Open a write transaction of the workspace, creating its row at the first one."""
        with self._alone():
            scope = self._usable(name, create=True)
            with (
                _journalled(self.options.journal),
                self.database.transaction(scope, write=True, durable=durable) as tx,
            ):
                yield tx, scope

    def _usable(self, name: str, *, create: bool = False) -> Scope:
        scope = self.scope(name, create=create)
        refused = name in self._old and self.options.unchecked == "refuse"
        if refused and not getattr(self._here, "checking", False):
            raise RestoreCheckNeeded("The database is older than its journal.")
        if self.actor is None:
            return scope
        return replace(scope, actor=self.actor, asking=self.asking, visible=audiences.visible)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a verb inside a verb: it would wait for itself, or see half of the outer one."""
        if getattr(self._here, "busy", False):
            raise InvalidInput(
                "A verb was called from inside another one, by a predicate or a counter.",
                remedy="Look things up before, and let the function only compute.",
            )
        self._here.busy = True
        try:
            yield
        finally:
            self._here.busy = False


@contextmanager
def _journalled(journal: Journal | None) -> Iterator[None]:
    """Have the journal say what became of the transaction inside."""
    committed = False
    try:
        yield
        committed = True
    finally:
        if journal is not None:
            # What it cannot mark it looks up in the chain when the memory is opened again.
            with suppress(StorageError):
                journal.settle(committed=committed)
