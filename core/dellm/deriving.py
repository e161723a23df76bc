"""Deriving: the verbs by which texts are made from records, and made anew when some of these go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from . import derivations, derived_runs, storing
from .arguments import check_callable, check_choice, check_text, check_whole
from .errors import InvalidInput
from .making import Derivation, Make, Rebuilder
from .previews import Previews
from .records import KINDS, Context, Record

_Make = TypeVar("_Make", bound=Make)


class Deriving(Previews):
    """What is registered to make texts from records, and the verbs that use it."""

    def rebuilder(self, name: str, make: Rebuilder) -> None:
        """Register what makes a derived record anew when some of its sources are forgotten.

        A record asks for it by metadata {"rebuild": name}, and so says that its payload and other
        metadata hold no content. `make(record, sources)` returns the new text, made from the
        sources that stay alone: never from the record's old text. It runs outside of any
        transaction and may take its time. A source that is rebuilt as well comes with its new text
        under its old id. None, a blank text, a failure, or a text that still holds the forgotten
        value: then the record is erased. It may return Made(text, calls=n) for a text that took n
        calls of a model. Where `make` has an attribute `model`, "provider/name", the new record is noted
        as made by it. Holds for all workspaces of this open memory; the last one of a name counts.
        Raises InvalidInput.
        """
        _check_name(name, "rebuilder")
        check_callable(make, "make")
        self._engine.rebuilders[name] = make

    def derivation(
        self, name: str, version: int = 1, *, model: str | None = None
    ) -> Callable[[_Make], _Make]:
        """Register a function from sources to a text, for `derive` and for making its results anew.

        Used as a decorator: `make(sources)` returns the text, or Made(text, calls=n) where that took
        n calls of a model; it must use nothing but the sources. `version` is to grow when the
        function changes: see `rederive`. `model` ("provider/name") is what its records say they were
        made by. Holds for all workspaces of this open memory; the last one of a name counts.
        Raises InvalidInput.
        """
        _check_name(name, "derivation")
        check_whole(version, "version=")
        if model is not None:
            check_text(model, "model=")
            if not model.strip():
                raise InvalidInput("model= is blank.")

        def register(make: _Make) -> _Make:
            check_callable(make, "make")
            self._engine.rebuilders[name] = Derivation(name, version, make, model)
            return make

        return register

    def derive(
        self,
        name: str,
        *,
        sources: Context | Sequence[int],
        thread: str | None = None,
        kind: str = "summary",
    ) -> Record:
        """Make a text from records by a derivation, and store it with them as its parents.

        The same sources, in the same order, thread and kind give the record that is there. When a
        source is erased the record goes with it, and is made anew from the sources that stay. While
        a source is suppressed no read returns it. It is kept no longer than its sources.
        The function runs outside of any transaction. Raises ContextForgotten, storing nothing, when
        a source is gone by then; DerivationError when the function fails or makes no text; NotFound
        for ids this workspace never had; InvalidInput.
        """
        ids = self._context_ids(sources)
        if isinstance(sources, Context) and thread is None:
            thread = sources.thread
        check_text(name, "name")
        check_choice(kind, KINDS, "kind=")
        storing.check_thread(thread)
        if not ids:
            raise InvalidInput("There is nothing to derive a text from: sources= is empty.")
        return derivations.derive(self._engine, self.id, name, ids, thread, kind)

    def rebuild(self, progress: derived_runs.Progress | None = None) -> derived_runs.Rebuilt:
        """Make anew what forgets have put off, from the sources that stay.

        Each result is one transaction, so this can be broken off and repeated, in any process. What
        fails is tried again by the next call, up to three times, then it is erased for good. What
        waits for a source that is suppressed, or whose function is not registered here, stays to
        be made. `progress(done, total)` is called after each.
        """
        if progress is not None:
            check_callable(progress, "progress=")
        return derived_runs.rebuild(self._engine.overseeing, self.id, progress)

    def rederive(
        self, name: str, progress: derived_runs.Progress | None = None
    ) -> derived_runs.Rebuilt:
        """Make anew, from their sources, the records that older versions of a derivation made.

        Each in a forget of its own, with a receipt: the old text goes, and with it all that was made
        from it: what derivations made is made anew in turn, replies are erased. A record whose new
        text fails stays as it is. Can be broken off and repeated; `pending` of the answer are those
        that are left. `progress(done, total)` is called after each. Raises InvalidInput.
        """
        check_text(name, "name")
        if progress is not None:
            check_callable(progress, "progress=")
        return derived_runs.rederive(self._engine.overseeing, self.id, name, progress)


def _check_name(name: str, what: str) -> None:
    check_text(name, "name")
    if not name.strip():
        raise InvalidInput(f"The name of a {what} is blank.")
