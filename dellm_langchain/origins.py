"""What a task's values were made from: the captured prompts, the calls they answer, what it read.

A reply that is the captured generation itself depends on exactly its prompt; a tool's result on the
call it answers. Anything else may hold whatever its task could read: the prompts it sent and the
whole checkpoint it started from, unless the user narrows that (`reads`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.checkpoint.serde.types import RESUME
from langgraph.types import Send

from dellm import Atom, Draft, Sources

from .addresses import thread_name
from .cache_replies import cached_replies
from .calls import Call, Prompt, ToolRun, text_of
from .capture import captured
from .handed import handed
from .item_lists import common, contents_of
from .made_texts import MadeText, made_texts
from .messages import draft_of
from .objects import Objects
from .raw_inputs import RawInputs
from .reads import THREAD, reads
from .tasks import Task
from .tracked_reads import shown

# What a task may be told besides its checkpoint: answers when it asked, results of other tasks.
RETURN = "__return__"
ANSWERS = frozenset({RESUME, RETURN})


class Origins:
    """Gives each value of a task its sources; made for one write."""

    def __init__(
        self,
        task: Task,
        objects: Objects,
        serde: Any,
        reads: Mapping[str, frozenset[str]],
        rebuilt: frozenset[str] = frozenset(),
    ) -> None:
        self._task, self.owner = task, task.owner
        self._rebuilt = rebuilt
        self._objects = objects
        self._serde = serde
        self._reads = reads
        self._rest: Sources | None = None
        self._replies: set[Sources | None] = set()  # what the replies in this write were made from
        # Whether what is looked at comes from outside; a Send never does: it is made of the state
        # and of what was given with it.
        self.given = task.given
        self.input = False  # whether it is a graph's input
        self.channel = ""  # whose value is looked at
        self.resume = False  # whether what is looked at answers an interrupt
        self.answers: list[Atom] = []  # answers that this write notes itself
        self.prompts: dict[tuple[str, int, str], Atom] = {}  # new messages without id, in prompts
        self.calls: dict[
            str, tuple[Atom, ToolCall]
        ] = {}  # tool calls made by messages of this write
        self.atoms: dict[int, Atom] = {}  # the objects of this write
        self._raw: RawInputs | None = None  # what the run was given that is no message object

    def of_message(self, message: BaseMessage) -> Sources | None:
        """Return what a message was made from; None when it was given from outside."""
        made = self._of_message(message)
        tied = cached_replies.tied(self._task.owner, message, made)
        tied = handed.tied(self.owner, message, tied, given=self.given)
        if made in self._replies:
            self._replies.add(tied)
        return tied

    def _of_message(self, message: BaseMessage) -> Sources | None:
        if self.given:
            return None
        if self._task.around is not None:
            return self.of_rest(inexact=True)
        if (told := self._told(message)) is not None:
            return self._exact(told.call)
        if isinstance(message, AIMessage) and (call := self._reply(message)) is not None:
            exact = self._exact(call)
            self._replies.add(exact)
            return exact
        if isinstance(message, ToolMessage) and (found := self._result(message)) is not None:
            return found
        given = captured.given(message) or self._was_raw(message)
        return None if given else self.of_rest(inexact=True)

    def of_given(self, atom: Atom) -> Sources | None:
        """Return what is repeated by something from outside: what was read there before."""
        return None if atom.draft is None else shown.tied(self._task.owner, atom.draft.text, None)

    def _was_raw(self, message: BaseMessage) -> bool:
        """Whether a reducer made it of what the run was given: the first one that says the same."""
        return self._task.ended and self._inputs().take(self.channel, message)

    def _inputs(self) -> RawInputs:
        if self._raw is None:
            self._raw = captured.raw_inputs(self._task.thread_id, self._task.owner)
        return self._raw

    def marked(self, draft: Draft, message: BaseMessage) -> Draft:
        """Return the draft of a message; a summary says by whom it can be made anew."""
        draft = cached_replies.marked(self._task.owner, message, draft)
        outside = self.given or self._task.around is not None
        told = None if outside else self._told(message)
        return draft if told is None else told.marked(draft)

    def _told(self, message: BaseMessage) -> MadeText | None:
        """Return what a message's text was made from, where a summarizer said that."""
        task = self._task
        made = made_texts.of(message, owner=task.owner, thread_id=task.thread_id, task_id=task.id)
        if made is None:
            return None
        whole = Prompt(map(self._objects.whole, made.call.prompt.messages))
        return made._replace(call=replace(made.call, prompt=whole))

    def is_made(self, message: BaseMessage) -> bool:
        """Whether a message is a model's reply or a tool's result, whatever else says the same."""
        if isinstance(message, ToolMessage):
            return True
        return isinstance(message, AIMessage) and self._reply(message) is not None

    def replied_anew(self, message: BaseMessage) -> bool:
        """Whether another task than the one that stored this message got it as a reply of its own."""
        if self._task.id is None or not isinstance(message, AIMessage):
            return False
        maker = self._objects.maker(message)
        if maker in {None, self._task.id}:
            return False
        return captured.of_reply(message, task_id=self._task.id) is not None

    def of_value(self, value: object) -> Sources | None:
        """Return what any other value was made from; a Send of a tool call depends on that call."""
        if self.resume:
            return self._answer()
        if self.given:
            return self._reduced()
        if self._task.ended and self._inputs().holds(self.channel, value):
            return None
        if isinstance(value, Send):
            calls = [self._made_call(one) for one in _call_ids(value.arg)]
            if calls and None not in calls:
                return Sources(also=tuple(one[0] for one in calls if one is not None))
        return self.of_rest()

    def of_rest(self, *, inexact: bool = False) -> Sources:
        """Return the sources of what cannot be told more exactly."""
        if self._rest is None:
            self._rest = self._of_tools() or self._of_place(inexact=inexact)
        return self._rest

    def of_running(self, call_id: str | None) -> Sources:
        """Return what code under way in the task makes a value of; `call_id` is the tool's it runs in."""
        if call_id is None:
            return self.of_rest(inexact=True)
        made = self._made_call(call_id)
        run = captured.tool(call_id, self._task.id, owner=self._task.owner)
        if made is None or run is None or run.reads_state or not run.asked(made[1]):
            return self.of_rest(inexact=True)
        return self._of_call(made[0], run)

    def of_call(self, call: Call) -> Sources:
        """Return what a model's reply to a call was made from."""
        return self._exact(call)

    def _read(self, *places: Hashable, before: int | None = None) -> list[Atom]:
        """Return what tasks or runs have read from stores and retrievers."""
        found = [one for at in places for one in reads.of(self._task.owner, at, before=before)]
        return [Atom(known=one, unsure=True) for one in dict.fromkeys(found)]

    def add_replies(self, atoms: Sequence[Atom]) -> None:
        """Tie what is made of all that a task read to the replies that it got as well.

        Not what it put into a prompt itself: that was there before.
        """
        rest = self._rest
        replies = [one for one in atoms if one.made in self._replies]
        if rest is None or not replies or self._task.ended:
            return
        prompted = {one for reply in replies if reply.made for one in reply.made.context}
        more = replace(rest, also=(*rest.also, *replies))
        for one in atoms:
            if one.made is rest and one not in prompted:
                one.made = more

    def _of_tools(self) -> Sources | None:
        """Return the sources of a graph's input that a tool gave, of its call alone; else None."""
        if self._task.around is None:
            return None
        runs = captured.tools_of(self._task.around[0])
        callers = [self._made_call(one.tool_call_id) for one in runs]
        if not runs or any(one.reads_state for one in runs) or None in callers:
            return None
        return Sources(also=tuple(one[0] for one in callers if one is not None))

    def _of_place(self, *, inexact: bool, before: int | None = None) -> Sources:
        """Return the prompts a task sent, and all of the checkpoint that it started from.

        `before` the call of a moment: only what it had been told by then.
        """
        node = self._task.node
        made = Sources(
            place=self._task.place,
            channels=self._reads.get(node) if node is not None else None,
            since=self._task.since,
            heard=ANSWERS,
            inexact=inexact,
        )
        if before is None:
            self._rest = made  # so that it is there for whatever looks at the prompts in turn
        calls = (one for one in self._calls() if before is None or one.moment < before)
        prompts = [self._prompt(call) for call in calls]
        # The longest one as a list, which is stored as what it has more than an earlier one.
        made.known = max((ids for ids, _ in prompts), key=len, default=[])
        inside = set(made.known)
        more = dict.fromkeys(one for ids, _ in prompts for one in ids if one not in inside)
        also = [atom for _, atoms in prompts for atom in atoms]
        if self._task.given or self._task.ended:
            made.beside = tuple(self.atoms.values())
        also += self.answers
        # Where all steps of a run are stored as one, no task is named.
        also += self._read(self._task.id or (THREAD, self._task.thread), before=before)
        made.also = (*(Atom(known=one) for one in more), *dict.fromkeys(also))
        return made

    def _reduced(self) -> Sources | None:
        """Return what a channel's value was made from that is not the value that was given.

        A reducer made it of the value before and of what was given; nothing where that is the input.
        A rebuilt value was made of all others.
        """
        if self._task.id is not None or self._task.place is None or self.input:
            return None
        channel = frozenset({self.channel})
        read = None if self.channel in self._rebuilt else channel
        return Sources(place=self._task.place, channels=read, since=self._task.since, heard=channel)

    def _answer(self) -> Sources | None:
        """Return what a task's note of an answer was made from: the answer as it came in."""
        if self._task.given or self._task.place is None:
            return None
        place = self._task.root or self._task.place
        answers = frozenset({RESUME})
        return Sources(place=place, channels=frozenset(), since=self._task.since, heard=answers)

    def _calls(self) -> list[Call]:
        if self._task.id is not None:
            return captured.of_task(self._task.id)
        if (task := self._task).step is None:
            return []
        return captured.of_step(task.thread_id, task.step, owner=task.owner, after=task.after)

    def _reply(self, message: AIMessage) -> Call | None:
        """Return the call that a message is the reply of: this task's, else any other's."""
        found = None
        if self._task.id is not None:
            found = captured.of_reply(message, task_id=self._task.id)
        if found is None:
            found = captured.of_reply(
                message, thread_id=self._task.thread_id, owner=self._task.owner
            )
        if found is None:
            found = captured.of_reply(message, owner=self._task.owner)
        return found

    def _exact(self, call: Call) -> Sources:
        known, atoms = self._prompt(call)
        # Of a run whose input is in no earlier checkpoint, what cannot be told may be made of that.
        told = not call.opaque and not any(one.lookup for one in atoms)
        more = self.atoms.values() if self._task.ended else ()
        return Sources(
            known=known,
            context=atoms,
            also=() if told else self._read(*call.tasks, call.root, before=call.moment),
            beside=() if told else tuple(more),
            place=self._task.place,
            since=self._task.since,
            heard=ANSWERS,
            only_if_unknown=not call.opaque,
            inexact=call.opaque,
        )

    def _result(self, message: ToolMessage) -> Sources | None:
        """Return the sources of a tool's result, None when nothing is known of its run."""
        run = captured.tool(message.tool_call_id, self._task.id, owner=self._task.owner)
        made = self._made_call(message.tool_call_id)
        if made is None:
            return None
        caller, call_made = made
        if run is None and message.tool_call_id in self.calls and _structured(message):
            return Sources(also=(caller,))
        told = run is not None and run.asked(call_made) and run.gave(message)
        if run is None or run.reads_state or not told:
            rest = self.of_rest(inexact=True)
            return replace(rest, also=(caller, *rest.also), inexact=True)
        return self._of_call(caller, run)

    def _of_call(self, caller: Atom, run: ToolRun) -> Sources:
        """Return what a tool made something of that reads nothing unseen."""
        also: list[Atom] = [caller, *self._read(*run.runs)]
        for call in run.calls:
            ids, atoms = self._prompt(call)
            also += [Atom(known=one) for one in ids]
            also += atoms
        opaque = any(one.opaque for one in run.calls)
        return Sources(
            also=tuple(also), place=self._task.place, since=self._task.since, heard=ANSWERS,
            only_if_unknown=not opaque, inexact=opaque,
        )  # fmt: skip

    def _made_call(self, call_id: str) -> tuple[Atom, ToolCall] | None:
        """Return the message that made a tool call, and the call."""
        if call_id in self.calls:
            return self.calls[call_id]
        known = self._objects.caller(call_id)
        return None if known is None else (Atom(known=known[0]), known[1])

    def _prompt(self, call: Call) -> tuple[list[int], list[Atom]]:
        """Return the records of a prompt: those known as they were sent, then the others."""
        prompt = call.prompt
        messages = list(prompt.messages)
        contents = list(prompt.contents)
        for at in sorted(prompt.constants, reverse=True):
            del messages[at], contents[at]
        head = 0
        # A system prompt that was seen for the first time stands before what is known.
        while (
            head < len(messages)
            and messages[head].id is None
            and (self._objects.find(messages[head]) is None)
        ):
            head += 1
        found = self._objects.prefix(messages[head:], contents[head:])
        known = found.ids
        if not found.messages:
            known = known[: common(contents_of(messages[head:]), contents[head:])]
        rest = [*range(head), *range(head + len(known), len(messages))]
        named = {
            at: atom for at in rest if (atom := self._system(call, at, messages[at], contents[at]))
        }
        thread = self._task.thread if call.thread_id is None else thread_name(call.thread_id)
        atoms = {
            at: named[at] if at in named else self._seen(messages[at], contents[at], thread)
            for at in rest
        }.items()
        texts = [text_of(contents[at]) for at, one in atoms if one.lookup]
        quoted = dict.fromkeys(it for text in texts for it in shown.of(self._task.owner, text))
        more = [Atom(known=one, unsure=True) for one in quoted]
        return known, [*(atom for _, atom in atoms), *more]

    def _system(self, call: Call, at: int, message: BaseMessage, content: Any) -> Atom | None:
        """Return the record of a system prompt without id; None of any other message.

        A node that says the same there each time made it the first time, of what it could read then.
        """
        if message.id is not None or not isinstance(message, SystemMessage):
            return None
        if call.owner != self._task.owner:
            return None
        if type(content) is not str or self._objects.find(message) is not None:
            return None
        key = (call.node, at, content)
        known = self._objects.prompts.get(key)
        if known is not None:
            return Atom(known=known)
        if key not in self.prompts:
            draft = Draft(content, role="system", thread=self._task.thread, kind="state")
            self.prompts[key] = Atom(draft)
            earlier = self._of_place(inexact=True, before=call.moment)
            kept = self._read(call.root, before=call.moment)  # by middleware, of another task
            earlier.also = (*earlier.also, *kept)
            made = self._of_tools() or earlier
            self.prompts[key].made = shown.tied(self._task.owner, content, made)
        return self.prompts[key]

    def _seen(self, message: BaseMessage, content: Any, thread: str) -> Atom:
        """Return a message of a prompt as an atom that is only looked up."""
        same = message.content is content or message.content == content
        if same and id(message) in self.atoms:
            return self.atoms[id(message)]
        known = self._objects.find(message) if same else None
        if known is not None:
            return Atom(known=known)
        if same and (record := handed.anywhere(self._task.owner, message)) is not None:
            return Atom(known=record, unsure=True)
        if message.id is None or not same:
            return Atom(lookup=True)
        return Atom(draft_of(message, thread, self._serde), lookup=True)


def _structured(message: ToolMessage) -> bool:
    """Whether this is the message by which an agent notes that it got its structured response."""
    return type(message.content) is str and message.content.startswith("Returning structured")


def _call_ids(value: Any) -> Iterable[str]:
    """Yield the ids of the tool calls that a Send carries and nothing else; nothing if it has more."""
    items = value if isinstance(value, list) else [value]
    found = []
    for one in items:
        call = one.get("tool_call", one) if isinstance(one, dict) else None
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or "args" not in call:
            return []
        found.append(call["id"])
    return found
