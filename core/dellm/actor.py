"""Who reads and writes inside a workspace, and whom a record is for: plain values, no I/O.

An audience is a conjunction: each of user, channel, project and organisation that it names has to be
the actor's. One that names none is the whole workspace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from .arguments import check_choice, check_flag, check_text
from .errors import InvalidInput

NO_CHANNEL = ""  # what is said to one user alone is in no channel, and for none
WORDS = ("private", "channel", "user", "project", "organisation", "global")


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a record is for; None does not limit it. The channel NO_CHANNEL is a user alone.

    `limits` are what the policy gives to some roles only, as Policy.limits_of names it: who has no
    role that may read all of these is not of it either.
    """

    user: str | None = None
    channel: str | None = None
    project: str | None = None
    organisation: str | None = None
    limits: tuple[str, ...] = field(default=(), kw_only=True)

    def holds(self, actor: Actor) -> bool:
        """Whether an actor is of it, but for its limits; an overseer is of each."""
        if actor.overseer:
            return True
        return all(
            wanted is None or wanted == has
            for wanted, has in zip(self.names, actor.audience.names, strict=True)
        )

    @property
    def names(self) -> tuple[str | None, ...]:
        """The user, channel, project and organisation, None for those that do not limit it."""
        return (self.user, self.channel, self.project, self.organisation)

    def __str__(self) -> str:
        said = [
            "nobody else" if name == "channel" and value == NO_CHANNEL else f"{name} {value}"
            for name, value in zip(_NAMES, self.names, strict=True)
            if value is not None
        ]
        said += [f"who may read {one}" for one in self.limits]
        return ", ".join(said) or "everybody in the workspace"


EVERYBODY = Audience()
_NAMES = ("user", "channel", "project", "organisation")


def meet(audiences: Iterable[Audience]) -> Audience | None:
    """Return the audience of what is made from what is for all of these; None: it is for nobody."""
    said: list[set[str]] = [set() for _ in _NAMES]
    listed = list(audiences)
    for one in listed:
        for known, value in zip(said, one.names, strict=True):
            if value is not None:
                known.add(value)
    if any(len(known) > 1 for known in said):
        return None
    limits = tuple(sorted({limit for one in listed for limit in one.limits}))
    return Audience(*(next(iter(known), None) for known in said), limits=limits)


@dataclass(frozen=True, slots=True)
class Actor:
    """On whose behalf something is read or written, where, and in what role and task.

    `role` and `task` say who and what for, as policies know them; they open no audience. An
    `overseer` may read everything of the workspace: its owner, or who administers it.
    """

    user: str | None = None
    channel: str | None = None
    project: str | None = None
    organisation: str | None = None
    role: str | None = None
    task: str | None = None
    overseer: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInput for a name that is blank or no string."""
        for one in fields(self)[:-1]:
            value = getattr(self, one.name)
            if value is not None:
                check_text(value, f"{one.name}=")
                if not value.strip():
                    raise InvalidInput(f"{one.name}= is blank; pass None for none.")
        check_flag(self.overseer, "overseer=")

    @property
    def audience(self) -> Audience:
        """The narrowest audience that the actor is of."""
        alone = self.user is not None and self.channel is None
        channel = NO_CHANNEL if alone else self.channel
        return Audience(self.user, channel, self.project, self.organisation)

    @property
    def usual(self) -> str:
        """The word for the audience of what the actor writes: the narrowest that is useful."""
        if self.channel is not None:
            return "channel"
        if self.user is not None:
            return "private"
        if self.project is not None:
            return "project"
        return "global" if self.organisation is None else "organisation"

    def chosen(self, word: str | None) -> Audience:
        """Return the audience that one of WORDS means for the actor, None for the usual one.

        Raises InvalidInput where the actor has no such name.
        """
        word = self.usual if word is None else word
        check_choice(word, WORDS, "audience=")
        if word == "global":
            return EVERYBODY
        name = "user" if word == "private" else word
        if getattr(self, name) is None:
            raise InvalidInput(f"audience={word!r} needs an actor with a {name}.")
        if word == "private":
            return Audience(user=self.user, channel=NO_CHANNEL)
        return Audience(**{name: getattr(self, name)})


NOBODY = Actor()
OVERSEER = Actor(overseer=True)
