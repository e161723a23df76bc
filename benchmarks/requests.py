"""How well deletion requests are recognised: `python -m benchmarks.requests --data DIR`.

DIR is the folder that holds `forget_intents/` and `clinc150/`. Reported are precision and recall
with 95 % Wilson intervals, whether the target was found, and false positives on everyday requests.
The rows of forget_intents were split by a hash of their id: one half was looked at while the rules
were written, the other was only counted (first count: 19 found, 1 wrong, 1 missed). The phrasings of our own are four batches; each was
written before the rules saw it, and the first, blind result of each is kept in BLIND.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dellm.requests import Classifier, EmbeddingClassifier, Request, RequestKind, recognise

Row = dict[str, Any]
OWN = Path(__file__).parent.parent / "tests" / "data" / "forget_unseen.jsonl"
BLIND = {
    1: {"true_positives": 170, "false_positives": 2, "false_negatives": 4},
    2: {"true_positives": 77, "false_positives": 9, "false_negatives": 9},
    3: {"true_positives": 65, "false_positives": 9, "false_negatives": 3},
    4: {"true_positives": 27, "false_positives": 3, "false_negatives": 3},
}
"""What the rules scored on each batch of `forget_unseen.jsonl` the first time they saw it."""


@dataclass(frozen=True)
class Score:
    """Counts over labelled rows; a row is positive when its label is `forget`."""

    name: str
    rows: int
    true_positives: int
    false_positives: int
    false_negatives: int
    targets_right: int = 0
    targets_asked: int = 0

    @property
    def precision(self) -> float:
        """The share of calls that were right, in [0, 1]."""
        return self.true_positives / max(1, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """The share of requests that were found, in [0, 1]."""
        return self.true_positives / max(1, self.true_positives + self.false_negatives)


def wilson(hits: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """Give the 95 % score interval of a proportion (Wilson 1927); (0, 1) without observations."""
    if not total:
        return 0.0, 1.0
    share, spread = hits / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / total + spread / total / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def read_rows(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def is_tuning(row: Row) -> bool:
    """Whether a row of forget_intents belongs to the half that was looked at."""
    return hashlib.sha256(row["id"].encode()).digest()[0] % 2 == 0


def finds_target(request: Request, target: str) -> bool:
    """Whether what is to be deleted is in the targets: all ids of a list, or the words themselves."""
    if request.scope == "message_id" and target.replace(",", "").replace("-", "").isdigit():
        first, _, last = target.partition("-")
        wanted = range(int(first), int(last) + 1) if last else map(int, target.split(","))
        return set(wanted) == {number for found in request.targets for number in found.ids}
    return any(target.casefold() in found.text.casefold() for found in request.targets)


def score(name: str, rows: Sequence[Row], model: Classifier | None = None) -> Score:
    hits = wrong = missed = right = asked = 0
    for row in rows:
        request = recognise(row["text"], model=model)
        positive, found = row["label"] == "forget", request.kind is RequestKind.FORGET
        hits += positive and found
        wrong += found and not positive
        missed += positive and not found
        if positive and found and row.get("target"):
            asked += 1
            right += finds_target(request, row["target"])
    return Score(name, len(rows), hits, wrong, missed, right, asked)


def false_positives(rows: Iterable[Row], model: Classifier | None = None) -> list[str]:
    return [
        row["text"]
        for row in rows
        if recognise(row["text"], model=model).kind is RequestKind.FORGET
    ]


def classifier(spec: str) -> Classifier | None:
    """Make the second opinion that `--model` names."""
    if spec == "none":
        return None
    if spec == "minilm":
        from dellm.embedding import MiniLMEmbedder

        return EmbeddingClassifier(MiniLMEmbedder())
    from dellm.models import resolve_model

    return resolve_model(spec)


def shown(result: Score) -> str:
    called = result.true_positives + result.false_positives
    real = result.true_positives + result.false_negatives
    low_p, high_p = wilson(result.true_positives, called)
    low_r, high_r = wilson(result.true_positives, real)
    return (
        f"{result.name:<34} n={result.rows:<4} "
        f"precision {result.precision:.3f} [{low_p:.3f}, {high_p:.3f}]  "
        f"recall {result.recall:.3f} [{low_r:.3f}, {high_r:.3f}]  "
        f"target {result.targets_right}/{result.targets_asked}"
    )


def blind(batch: int, rows: int) -> Score:
    return Score(f"own batch {batch}, first blind run", rows, **BLIND[batch])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the shared data folder")
    parser.add_argument("--model", default="none", help="none, minilm, local, or openai:NAME")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    intents = options.data / "forget_intents" / "forget_intents.jsonl"
    everyday = options.data / "clinc150"
    for needed in (intents, everyday / "test_all.jsonl", everyday / "lexical_negatives.jsonl"):
        if not needed.is_file():
            print(f"{needed.name} is not in the data folder (--data DIR)", file=sys.stderr)
            return 2
    model = classifier(options.model)
    rows, own = read_rows(intents), read_rows(OWN)
    results = [
        score("forget_intents, tuning half", [r for r in rows if is_tuning(r)], model),
        score("forget_intents, held-out half", [r for r in rows if not is_tuning(r)], model),
        score("own phrasings, now (seen)", own, model),
    ]
    if options.model == "none":
        results += [blind(b, sum(row["batch"] == b for row in own)) for b in BLIND]
    wrong = {
        name: false_positives(read_rows(everyday / f"{name}.jsonl"), model)
        for name in ("test_all", "lexical_negatives")
    }
    for result in results:
        print(shown(result))
    for name, texts in wrong.items():
        print(f"CLINC150 {name}: {len(texts)} taken for requests", *texts, sep="\n   ")
    if options.json:
        report = {"scores": [asdict(r) for r in results], "clinc150": wrong, "model": options.model}
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
