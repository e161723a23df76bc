"""Memory: the verbs, each one transaction. The only module that decides where one begins and ends.

remember → context → record → plan → forget → receipt; scan, scrub and verify prove it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from . import (
    audiences,
    derived_runs,
    governing,
    indexing,
    planning,
    policies,
    receipts,
    regenerating,
    restore_check,
    scrub,
    sequences,
    storing,
    suppressing,
    values,
)
from . import forget as forgetting
from .actor import Actor
from .arguments import (
    check_callable,
    check_choice,
    check_flag,
    check_iterable,
    check_text,
    check_whole,
)
from .database import Clock, Scope, Tx, now, open_database, without_password
from .deriving import Deriving
from .details import Details
from .embedding import Embedder, resolve
from .engine import SCRUB_BELOW, UNCHECKED, Engine, Options
from .entry import GUARDED, POLICIES, lasting
from .errors import InvalidInput, PreviewRequired, StorageError, UnsupportedHere
from .executing import rebuild_and_execute
from .journal import journal_at
from .plan import STRICT, Plan, Reach, refuse_others
from .policy import Policy
from .policy_values import By
from .previews import Selection
from .providers import SHIPPED, Providers
from .records import Context, Draft, Record
from .selectors import Selector
from .waiting_room import WaitingRoom


class Memory(Deriving, WaitingRoom):
    """An open memory, scoped to one workspace. Thread-safe; close it, or use it in a `with`."""

    @classmethod
    def open(
        cls,
        url: str,
        *,
        embedder: str | Embedder | None = "auto",
        scrub_below: int = SCRUB_BELOW,
        region: str = "US",
        clock: Clock = now,
        guards: str = "redact",
        guard_days: int | None = 365,
        providers: str | Path | None = None,
        credentials: str = "redact",
        journal: str | Path | None = None,
        unchecked: str = "refuse",
        policy: Policy | str | Path | None = None,
    ) -> Self:
        """Open (and create or migrate) the memory at a path, ":memory:" or "postgresql://...".

        `embedder`: "local", "openai:MODEL", an object, None, or "auto" (local where it is
        installed, else None). `scrub_below`: SQLite files up to this many bytes are physically
        cleaned within each forget. `region`: whose phone numbers need no country code. `clock`:
        microseconds UTC. `providers`: a file of your own entries in the table of providers, in the
        form of data/providers.toml. `credentials`: whether keys, passwords, card numbers and the
        like that come in are stored as "[credential]" ("redact"), kept out of use until confirmed
        ("quarantine"), an error ("refuse") or stored as they are ("allow"). `guards`: whether what
        comes in again after a forget with a guard is stored redacted ("redact") or waits for
        confirmation ("quarantine"); `guard_days`: how long, None for ever. `journal`: a file, kept
        apart from the database and its backups, that says what was forgotten; where the database is
        older than it, reads are refused until restore_check ("refuse") or not ("serve"): `unchecked`. `policy`: a
        Policy, or the file of one, that decides what is kept; None for the one that ships.
        Raises StorageError, SchemaError, EmbedderError, InvalidInput.
        """
        check_whole(scrub_below, "scrub_below=")
        check_text(region, "region=")
        check_callable(clock, "clock=")
        check_choice(credentials, POLICIES, "credentials=")
        check_choice(guards, GUARDED, "guards=")
        check_choice(unchecked, UNCHECKED, "unchecked=")
        table = SHIPPED if providers is None else Providers(providers)
        options = Options(
            scrub_below,
            region,
            clock=clock,
            credentials=credentials,
            guards=guards,
            guard_for=lasting(guard_days),
            providers=table,
            journal=journal_at(journal),
            unchecked=unchecked,
            policy=None if policy is None else policies.chosen(policy),
        )
        chosen = resolve(embedder)
        engine = Engine(open_database(url), chosen, options, without_password(url))
        return cls(engine, "default")

    def workspace(self, name: str) -> Self:
        """Return the same memory scoped to another workspace; nothing is stored by that."""
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("The workspace's name is empty.")
        return type(self)(self._engine, name)

    def acting(
        self,
        *,
        user: str | None = None,
        channel: str | None = None,
        project: str | None = None,
        organisation: str | None = None,
        role: str | None = None,
        task: str | None = None,
        overseer: bool = False,
    ) -> Self:
        """Return the same memory on behalf of somebody; nothing is stored by that. See Actor.

        It reads what is for everybody in the workspace, and what is for just these; what it stores
        is for the narrowest audience that is useful, and what it forgets by a selector is what it
        may read. An `overseer` reads everything. Raises InvalidInput for a name that is blank.
        """
        actor = Actor(user, channel, project, organisation, role, task, overseer)
        return type(self)(self._engine.acting(actor), self.id)

    def close(self) -> None:
        """Close the memory for every workspace. Safe to repeat."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self._engine.database.location!r}, workspace={self.id!r})"

    # remember and record

    def remember(self, text: str, *, role: str = "user", **details: Unpack[Details]) -> Record:
        """Store what was said or came in, made from nothing we know of; return the record.

        Raises InvalidInput, ContextForgotten (the object was erased before), StorageError.
        """
        return self.remember_many([Draft(text, role=role, **details)])[0]

    def remember_many(self, drafts: Sequence[Draft]) -> list[Record]:
        """Store many records in order, in one transaction; a repeated framework object only once."""
        check_iterable(drafts, "drafts=")
        drafts = list(drafts)
        for draft in drafts:
            storing.check(draft)
        if not drafts:
            return []
        with self._engine.writing(self.id) as (tx, scope):
            named = any(draft.framework_id is not None for draft in drafts)
            guards = storing.lock(tx, scope.ws) if named else 0
            return storing.store_once(tx, scope, drafts, self._now(), guards)

    def remember_parts(
        self, text: str, *, role: str = "user", **details: Unpack[Details]
    ) -> list[Record]:
        """Store each sentence as a record of its own (paper, section VII-A), so only a part need go.

        The parts joined in order are the text.
        """
        check_text(text, "text=")
        parts = [part for part in values.sentences(text) if part] or [text]
        return self.remember_many([Draft(part, role=role, **details) for part in parts])

    def record(
        self,
        text: str,
        *,
        context: Context | Sequence[int] = (),
        role: str = "assistant",
        **details: Unpack[Details],
    ) -> Record:
        """Store a reply together with exactly what was in its prompt.

        Raises ContextForgotten, storing nothing, when a record of the context was erased or
        suppressed since; NotFound for ids this workspace never had; InvalidInput.
        """
        ids = self._context_ids(context)
        if isinstance(context, Context) and context.thread is not None:
            details.setdefault("thread", context.thread)
        draft = Draft(text, role=role, **details)
        storing.check(draft)
        engine = self._engine
        with engine.writing(self.id) as (tx, scope):
            if (old := storing.there_already(tx, scope, draft, self._now())) is not None:
                return old
            made, numbers = storing.store(tx, scope, [draft], self._now())
            tip = sequences.attach_context(
                tx, scope, made[0].id, ids, draft.thread or "", numbers.sequence, engine.tips
            )
            if numbers.governed & governing.AUDIENCES:
                audiences.require_readable(tx, scope, ids)
                audiences.narrow(tx, scope, [made[0].id], numbers.governed)
            kept = governing.settled(tx, scope, made[0], numbers.governed)
        if tip is not None:
            engine.tips.note(scope.ws, draft.thread or "", tip)
        return kept

    def index(self, progress: indexing.Progress | None = None) -> int:
        """Make the vectors still missing, all anew if they were another embedder's; return how many.

        Resumable. `progress(done, total)` is called after each batch. Raises EmbedderError.
        """
        if progress is not None:
            check_callable(progress, "progress=")
        return indexing.index(self._engine, self.id, progress)

    def regenerator(self, make: regenerating.Ask) -> None:
        """Register what asks for a reply again when some of what it was made from is forgotten.

        `make(reply, context)` returns the new text, made from the context that stays alone, in the
        order of the prompt; earlier replies in it are those that stand there by then. `reply` has no
        content. It is asked outside of any transaction, where a forget says
        on_dependents="regenerate". None, a blank text, a failure, or a text that still holds the
        forgotten value: then the reply is erased. Where `make` has an attribute `model`,
        "provider/name", the new reply is recorded with it. Holds for all workspaces of this open
        memory. Raises InvalidInput.
        """
        check_callable(make, "make")
        self._engine.regenerator = make

    def after_forget(self, call: Callable[[receipts.Receipt], object]) -> None:
        """Have a function called after every forget of this open memory, once it is committed.

        A bound method is held only as long as its object is used elsewhere. What it cannot do it
        has to keep for later itself: a forget is not undone by its failure, nor reports it.
        """
        check_callable(call, "call")
        self._engine.listeners.add(call)

    # forget

    def forget(
        self,
        what: Plan | str | None = None,
        *,
        mode: str = "erase",
        reach: Reach = STRICT,
        unit: str = "span",
        scrub: bool | None = None,
        guard: bool | None = None,
        on_dependents: str = "erase",
        regenerate: regenerating.Ask | None = None,
        rebuild: str = "now",
        by: By | str | None = None,
        **selection: Unpack[Selection],
    ) -> receipts.Receipt:
        """Execute a plan, or plan and execute at once; return the receipt.

        Repeating it returns the same receipt. Dependents that can be rebuilt (see `derive`) are,
        which may take as long as a model does; the erasing itself is one transaction. `rebuild`:
        "now"; "later" leaves derivations to the verb `rebuild`, as those are whose function is not
        registered here; "never" makes nothing anew.
        `on_dependents="regenerate"` has the replies among them asked again by `regenerate`, else by
        what `regenerator` registered. `unit` is how much "redact" takes: "span" or "clause".
        `scrub`: clean the files too; None does so for small SQLite files. `guard`: keep what goes
        from coming in again, by keyed digests; None as `guards.always` said of the workspace. `by`: who asks, where the program does not:
        on the word of a "tool", "document" or "model" nothing is forgotten.
        Raises PlanChanged, NothingMatched, PreviewRequired (a selector that guesses needs a plan),
        SelectorError, StorageError, InvalidInput (a plan together with what it does not say),
        PolicyRefused, which the audit chain then says.
        """
        asker = None if by is None else policies.asked(self._engine, by)
        if asker is not None:
            self.policies.require("forget", asker)
        if guard is not None:
            check_flag(guard, "guard=")
        look = self._look()
        ready = what if isinstance(what, Plan) else None
        if ready is not None:
            refuse_others(ready, mode, reach, on_dependents, selection)
            on_dependents = ready.on_dependents
        known = derived_runs.to_be_used(self._engine, rebuild)
        names = regenerating.names(known, on_dependents, mode)
        selector = self._selector(_text(what), selection) if ready is None else Selector()
        if selector.guesses:
            raise PreviewRequired("A selector by meaning, description or alias guesses.")
        terms = forgetting.Terms(
            look,
            self._engine.options.repeat_for,
            self._engine.database.out_of_reach(),
            unit,
            rebuilders=names,
            asker=regenerating.asker(regenerate or self._engine.regenerator, names),
            providers=self._engine.options.providers,
            puts_off=rebuild != "never",
            guard=guard,
            by=asker,
        )

        def planned(tx: Tx, scope: Scope) -> Plan:
            if ready is not None:
                return ready if terms.puts_off else replace(ready, rebuilds=())
            return planning.make(
                tx, scope, selector, look, mode=mode, reach=reach, suspects=False, shown=False,
                rebuilders=terms.rebuilders,
            )  # fmt: skip

        try:
            with policies.refusals(self._engine, self.id, "forget", asker or By()):
                receipt = rebuild_and_execute(self._engine.overseeing, self.id, planned, terms)
            self._engine.listeners.tell(receipt)  # before the clean-up: they write as well
            return self._after(receipt, scrub=scrub)
        finally:
            values.let_go()

    def correct(
        self, id_: int, to: str, *, by: By | str | None = None, rebuild: str = "now"
    ) -> receipts.Receipt:
        """Put a record right (GDPR article 16): its new text takes its place; return the receipt.

        The old text is erased like anything forgotten, with all that was made from it; what can be
        made anew is, from the new text. The new record's id is `receipt.redacted[id_]`. For a look
        before, plan(ids=[id_], corrected={id_: to}). Raises as forget.
        """
        check_whole(id_, "The id")
        return self.forget(ids=[id_], corrected={id_: to}, by=by, rebuild=rebuild)

    def _after(self, receipt: receipts.Receipt, *, scrub: bool | None) -> receipts.Receipt:
        wanted = scrub
        if wanted is None:
            limit = self._engine.options.scrub_below
            wanted = receipt.level == "erased" and self._engine.database.cleans_at_once(limit)
        if wanted:
            # The erasure is committed: a clean-up that breaks off is no reason to say otherwise.
            # The receipt then says "erased", and scrub() goes on from there.
            with suppress(StorageError):
                self.scrub()
        return self.receipt(receipt.number)

    def reject(self, id_: int) -> receipts.Receipt:
        """Forget a record that waits for confirmation, and all made from it; see forget.

        Raises NothingMatched for one that does not wait.
        """
        check_whole(id_, "The id")
        return self.forget(ids=[id_], where={"status": "quarantined"})

    def restore(self, receipt: receipts.Receipt) -> list[int]:
        """Undo a suppression; return the ids that may be used again (an erased one may not)."""
        if not isinstance(receipt, receipts.Receipt) or receipt.mode != "suppress":
            raise InvalidInput("Only a suppression can be undone.")
        if receipt.workspace != self.id:
            raise InvalidInput("The receipt is of another workspace.")
        with self._engine.writing(self.id, durable=True) as (tx, scope):
            return suppressing.restore(tx, scope, receipt, self._now())

    # proof

    def scrub(self, progress: Callable[[str], None] | None = None) -> scrub.ScrubReport:
        """Clean the database's files and prove by reading them that erased content is gone."""
        if progress is not None:
            check_callable(progress, "progress=")
        return scrub.scrub(self._engine, self.id, progress)

    def restore_check(self) -> restore_check.RestoreReport:
        """Erase again, in every workspace, what the journal says is gone and a restore brought back.

        Safe to repeat, and to break off. Each is a forget with a receipt. Raises UnsupportedHere for a
        memory that was opened without a journal, StorageError for a damaged one.
        """
        return restore_check.check(self, self._engine)

    def bind_login(self, login: str) -> None:
        """Let a PostgreSQL login role read this workspace, and no other, with SQL of its own.

        Raises UnsupportedHere on SQLite, which has no logins.
        """
        bind = getattr(self._engine.database, "bind_login", None)
        if bind is None:
            raise UnsupportedHere("SQLite has no logins.")
        check_text(login, "login=")
        bind(login, self._engine.scope(self.id, create=True))


def _text(what: Plan | str | None) -> str | None:
    if isinstance(what, Plan):
        return None
    return what
