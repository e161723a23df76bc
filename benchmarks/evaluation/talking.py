"""Put finished conversations before each system, ask, have the answers forgotten, ask again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .results import Cell, Number, Report, mean, rate
from .running import Run
from .shipped import systems
from .stating import states
from .systems import Make, System
from .talks import Probe, Talk

RIGHT = (
    "Right: the answer holds at least half of the telling words of the right one; no model judges. "
    "A reply in other words counts as wrong, so does an abstention that was right."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a system answered to a probe, and, where it was told to forget, what it did then.

    `before` is its answer before anything was forgotten, `still` that after other probes' messages
    were (None for the first of a conversation), `after` that after its own. `after` is None where
    the data do not say which messages hold the answer. `gone` counts the messages that went, of
    `held` that it had before; None and 0 where nothing was to be forgotten.
    """

    probe: Probe
    before: str
    still: str | None = None
    after: str | None = None
    gone: int | None = None
    held: int = 0


def asked(make: Make, talk: Talk) -> Iterator[Asked]:
    """Load a conversation into a new system and yield what it answers to each probe.

    All probes are asked before the first is forgotten, and each once more right before its own
    messages are: what the deletions of the others took from it shows there.
    """
    system = make()
    try:
        system.load(talk.said)
        before = [system.ask(probe.question) for probe in talk.probes]
        for place, (probe, said) in enumerate(zip(talk.probes, before, strict=True)):
            yield _forgotten(system, Asked(probe, said), first=place == 0)
    finally:
        system.close()


def _forgotten(system: System, one: Asked, *, first: bool) -> Asked:
    if not one.probe.told:
        return one
    still = None if first else system.ask(one.probe.question)
    held = len(system.held())
    gone = sum(system.forget(text) for text in one.probe.told)
    return replace(one, still=still, after=system.ask(one.probe.question), gone=gone, held=held)


def every(
    run: Run, systems: Mapping[str, Make], talks: Sequence[Talk]
) -> dict[str, tuple[Asked, ...]]:
    """Return what each system answered to every probe of every conversation, in their order."""
    return {
        name: tuple(one for talk in run.watch(talks, name) for one in asked(make, talk))
        for name, make in systems.items()
    }


def by_kind(found: Iterable[Asked]) -> dict[str, tuple[Asked, ...]]:
    """Return the answers of each kind of probe; all together first, where there are several."""
    kinds: dict[str, list[Asked]] = {}
    every_one = list(found)
    for one in every_one:
        kinds.setdefault(one.probe.kind, []).append(one)
    if len(kinds) > 1:
        kinds = {"all": every_one, **kinds}
    return {kind: tuple(several) for kind, several in kinds.items()}


def right(pairs: Iterable[tuple[Probe, str | None]]) -> Number:
    """Return the share of answers that state what is right; None is no answer and is not counted."""
    return rate(None if said is None else states(said, probe.answer) for probe, said in pairs)


def gone(found: Sequence[Asked], seed: int) -> dict[str, Cell | Number]:
    """Return how many messages went with an answer, and which share of those held; or nothing."""
    told = [one for one in found if one.gone is not None]
    if not told:
        return {}
    return {
        "messages gone": mean([one.gone or 0 for one in told], seed),
        "gone, of all": mean([(one.gone or 0) / max(one.held, 1) for one in told], seed),
    }


def rows(found: Mapping[str, Sequence[Asked]], seed: int) -> Iterator[dict[str, Cell | Number]]:
    """Yield a row for each system and kind of probe."""
    for name, several in found.items():
        for kind, of_kind in by_kind(several).items():
            yield {
                "system": name,
                "questions": kind,
                "n": len(of_kind),
                "right": right((one.probe, one.before) for one in of_kind),
                **_after(of_kind, seed),
            }


def _after(found: Sequence[Asked], seed: int) -> dict[str, Cell | Number]:
    went = gone(found, seed)
    if not went:
        return {}
    others = [one for one in found if one.still is not None]
    return {
        "right after forgetting": right((one.probe, one.after) for one in found),
        "others: right before": right((one.probe, one.before) for one in others),
        "others: right after": right((one.probe, one.still) for one in others),
        **went,
    }


def reported(run: Run, name: str, title: str, talks: Sequence[Talk], *notes: str) -> Report:
    """Ask every system about every conversation; return the report, named by the model, too."""
    found = every(run, systems(run), talks)
    return Report(
        name=run.named(name),
        title=f"{title} ({run.model.name})",
        rows=list(rows(found, run.seed)),
        settings=run.settings(conversations=len(talks)),
        notes=[RIGHT, *notes],
    )
