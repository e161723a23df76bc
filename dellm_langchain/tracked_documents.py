"""Documents of a user's own retrievers and stores as records: each once in a workspace."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from langchain_core.documents import Document

from dellm import Atom, Draft, Foreign, InvalidInput, Memory, Sources
from dellm.adapting import foreign

from .retriever import ID
from .running import Here, here
from .tracked_reads import shown

# Names that mean something to the core in the metadata of a record, and that of the record itself.
RESERVED = frozenset({"rebuild", "tool_call_id", ID})
THERE = "dellm_document"  # the id that a document has where it comes from


class Shelf:
    """The documents of one source in memory; `name` is what the source goes by there.

    `key` names the configurable that names the workspace. `source` is the metadata of a document
    that names what it is a part of: the same text from two sources is two documents. `noted`: the
    documents' own ids are kept, so that what is forgotten can be deleted by them. `own`: only what
    was added through this shelf in the workspace is found. `given`: what running code adds comes
    from outside, and not from what that code was told.
    """

    def __init__(
        self,
        memory: Memory,
        name: str,
        key: str | None,
        source: str,
        *,
        noted: bool,
        given: bool,
        own: bool = False,
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidInput("track() takes a dellm.Memory.")
        for option, said in (("name=", name), ("source=", source)):
            if not isinstance(said, str) or not said.strip():
                raise InvalidInput(f"{option} is no name.")
        self.memory, self.name, self.key, self.source = memory, name, key, source
        self.noted, self.given, self.own = noted, given, own

    def of(self, memory: Memory) -> Shelf:
        """Return the shelf of one workspace, whatever the config says."""
        twin = copy.copy(self)
        twin.memory, twin.key = memory, None
        return twin

    def here(self) -> Here:
        """Return where the calling code runs; InvalidInput where its config names no workspace."""
        return here(self.memory, self.key)

    def known(self, where: Here, documents: Sequence[Document]) -> list[Document | None]:
        """Return found documents with the ids of their records, None for what was forgotten.

        One that was made of another that has a record, by cutting it down, goes with that.
        """
        held = [self._foreign(one, one.id, _parent(one)) for one in documents]
        ids = where.memory.elsewhere.take(self.name, held, noted=self.noted, own=self.own)
        pairs = zip(documents, ids, strict=True)
        return [None if id_ is None else _named(one, id_) for one, id_ in pairs]

    @staticmethod
    def read(where: Here, documents: Sequence[Document]) -> None:
        """Note that the running code was given these documents with their ids."""
        where.read(one.metadata[ID] for one in documents)
        shown.note(where.memory, [(one.metadata[ID], [one.page_content]) for one in documents])

    def add(
        self, where: Here, documents: Sequence[Document], names: Sequence[str]
    ) -> list[int | None]:
        """Return the records of documents that are about to be added, None for what is refused.

        What the running task adds was made from what the task was told.
        """
        if self.given:
            return self._added(where, documents, names, None)
        with where.making() as made:
            return self._added(where, documents, names, made.sources, made.trusted)

    def _added(
        self,
        where: Here,
        documents: Sequence[Document],
        names: Sequence[str],
        made: Sources | None,
        trusted: int = -1,
    ) -> list[int | None]:
        pairs = zip(documents, names, strict=True)
        held = [self._foreign(one, name, made) for one, name in pairs]
        return where.memory.elsewhere.take(
            self.name, held, new=True, thread=where.thread, trusted=trusted
        )

    def deletable(self, memory: Memory, names: Sequence[str] | None) -> list[str] | None:
        """Return which ids may be deleted: where only what is its own is found, no other."""
        if not self.own:
            return None if names is None else list(names)
        if names is None:
            raise InvalidInput("Other workspaces have documents here: name those to be deleted.")
        return memory.elsewhere.noted(self.name, list(names))

    def _foreign(self, one: Document, name: str | None, made: Sources | None) -> Foreign:
        said = foreign.plain(one.metadata, RESERVED)
        if name is not None and not foreign.says_nothing(name):
            said[THERE] = name  # it may say something, too
        draft = Draft(one.page_content, role="document", kind="document", metadata=said)
        source = one.metadata.get(self.source)
        return Foreign(name, Atom(draft, made=made), "" if source is None else str(source))


def _parent(one: Document) -> Sources | None:
    known = one.metadata.get(ID)
    return Sources(also=(Atom(known=known),)) if type(known) is int and known > 0 else None


def _named(one: Document, record: int) -> Document:
    return one.model_copy(update={"metadata": {**one.metadata, ID: record}})


def unnamed(one: Document) -> Document:
    """Return a document as it was before it was given the id of its record."""
    if ID not in one.metadata:
        return one
    rest = {key: value for key, value in one.metadata.items() if key != ID}
    return one.model_copy(update={"metadata": rest})
