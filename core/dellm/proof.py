"""A proof: a receipt that somebody without the database can check.

One JSON document in one canonical form: the receipt, what was looked at in which store and how, and
the entry of the audit chain it rests on. It holds no content. See proving for how one is made, and
signing for who vouches for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .arguments import check_kind
from .errors import InvalidInput
from .ledger import digest_of
from .records import from_micros
from .signing import Signature, check_signature, signature_of

FORMAT = "dellm-proof/1"
MOST_BYTES = 64 << 20
_FIELDS = frozenset(
    {"format", "receipt", "scope", "stores", "chain", "level", "issued_at", "valid_until"}
)
_AS_IN_RECEIPT = ("workspace", "mode", "reach")


@dataclass(frozen=True, slots=True)
class Store:
    """What one store held of the erased records: rows or places `before` the forget and `after`.

    None is "not looked at", which is never "clean"; `how` says how it was looked for.
    """

    name: str
    before: int | None
    after: int | None
    how: str

    @property
    def clean(self) -> bool:
        """Whether it was looked at and holds nothing."""
        return self.after == 0


@dataclass(frozen=True, slots=True)
class Proof:
    """A receipt with what was found where, as of `issued_at`; `data` is the whole document."""

    data: Mapping[str, Any]

    @property
    def stores(self) -> tuple[Store, ...]:
        """What was looked at, and what was not."""
        return tuple(Store(**one) for one in self.data["stores"])

    @property
    def level(self) -> str:
        """The level reached: "held", "suppressed", "erased" or "scrubbed"."""
        return str(self.data["level"])

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """The stores about whose state nothing is said."""
        return tuple(one.name for one in self.stores if one.after is None)

    @property
    def clean(self) -> bool:
        """Whether every store was looked at and holds nothing."""
        return bool(self.stores) and all(one.clean for one in self.stores)

    def to_bytes(self) -> bytes:
        """Return the document in its canonical form, in which it is signed and checked."""
        return canonical(self.data)

    def signed(self, key: bytes) -> Proof:
        """Return it signed by an Ed25519 private key in PEM form.

        Raises InvalidInput for another key, UnsupportedHere without the extra "signing".
        """
        bare = {name: value for name, value in self.data.items() if name != "signature"}
        return Proof({**bare, "signature": signature_of(key, canonical(bare)).to_json()})

    def __str__(self) -> str:
        lines = [f"{self.level}, as of {self.data['issued_at']}"]
        lines += [f"{one.name}: {_said(one)} ({one.how})" for one in self.stores]
        lines += [f"out of reach: {one}" for one in self.data["receipt"]["out_of_reach"]]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of a proof found. `valid`: nothing in it is wrong, and it is not out of date.

    `clean`: it says of every store that it was looked at and holds nothing. `signed_by` is the
    fingerprint of the key that signed it, "" for no signature; `trusted`: that is the key given.
    """

    valid: bool
    clean: bool
    level: str
    problems: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    signed_by: str = ""
    trusted: bool = False

    def __str__(self) -> str:
        lines = [f"{'valid' if self.valid else 'NOT valid'}: {self.level}"]
        lines += [f"problem: {one}" for one in self.problems]
        lines += [f"not looked at: {one}" for one in self.not_looked_at]
        who = f"signed by {self.signed_by}" if self.signed_by else "not signed"
        known = "the key given" if self.trusted else "no key was given to compare it with"
        return "\n".join([*lines, f"{who} ({known})" if self.signed_by else who])


def canonical(data: Mapping[str, Any]) -> bytes:
    """Return JSON with sorted names, no spaces and no escapes but the needed ones, in UTF-8.

    For the values in a proof (strings, whole numbers, booleans, null) this is RFC 8785.
    """
    said = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return said.encode("utf-8", "surrogatepass")


def check_proof(
    document: bytes, *, public_key: bytes | None = None, at: datetime | None = None
) -> Checked:
    """Check a proof without the database: its form, its arithmetic, its chain entry, its signature.

    `public_key` (PEM) is whose signature is expected: without one, a signature only shows that the
    document is as it was signed, by whoever has the key named in it. `at` is now where left out.
    What a proof says of the time it was issued cannot be checked without the database: who signs it
    vouches for that. Raises InvalidInput for what is no proof, UnsupportedHere for a signature without
    the extra "signing".
    """
    check_kind(document, bytes, "document")
    data = _read(document)
    signature = _signature(data)
    bare = {name: value for name, value in data.items() if name != "signature"}
    problems = [] if canonical(data) == document.rstrip(b"\n") else ["not in its canonical form"]
    problems += _wrong(data, at or datetime.now(UTC))
    trusted = False
    if signature is None and public_key is not None:
        problems.append("not signed, though a key was given")
    if signature is not None:
        trusted, wrong = check_signature(signature, canonical(bare), public_key)
        problems += wrong
    proof = Proof(data)
    return Checked(
        valid=not problems,
        clean=proof.clean,
        level=proof.level,
        problems=tuple(problems),
        not_looked_at=proof.not_looked_at,
        signed_by="" if signature is None else signature.fingerprint,
        trusted=trusted,
    )


def _read(document: bytes) -> dict[str, Any]:
    problem = "The document is no proof of this library."
    try:
        data = json.loads(document) if len(document) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInput(problem)
    try:
        if set(data) - {"signature"} != _FIELDS or not all(map(_well_formed, data["stores"])):
            raise InvalidInput(problem)
        _wrong(data, datetime.now(UTC))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidInput(problem) from None
    return data


def _well_formed(one: Mapping[str, Any]) -> bool:
    store = Store(**one)
    counts = (store.before, store.after)
    return isinstance(store.name, str) and all(
        number is None or (type(number) is int and number >= 0) for number in counts
    )


def _signature(data: Mapping[str, Any]) -> Signature | None:
    kept = data.get("signature")
    if kept is None:
        return None
    try:
        return Signature.from_json(kept)
    except (KeyError, TypeError, ValueError):
        raise InvalidInput("The signature of the document is damaged.") from None


def _wrong(data: Mapping[str, Any], at: datetime) -> list[str]:
    issued, until = (datetime.fromisoformat(data[name]) for name in ("issued_at", "valid_until"))
    found = ["out of date: it has to be issued anew"] if until < at else []
    if not from_micros(data["chain"]["at"]) <= issued < until:
        found.append("issued before what it proves, or after it has run out")
    return [*found, *_against_chain(data), *_against_stores(data)]


def _against_chain(data: Mapping[str, Any]) -> list[str]:
    """Return what the document says otherwise than the entry of the audit chain it rests on."""
    chain, receipt = data["chain"], data["receipt"]
    made = digest_of(chain["seq"], chain["at"], chain["action"], chain["body"], chain["previous"])
    if made != chain["digest"]:
        return ["the entry of the audit chain was changed"]
    body = json.loads(chain["body"])
    said = {
        "ids": body["ids"] == receipt["ids"],
        "mode": chain["action"] == receipt["mode"],
        "reach": body["reach"] == receipt["reach"],
        "relaxed": body["relaxed"] == receipt["relaxed"],
        "number": receipt["id"] == f"{receipt['workspace']}/{chain['seq']}",
        "time": receipt["at"] == from_micros(chain["at"]).isoformat(),
        "digest": body["digest"] == receipt["digest"],
        "what was held back": body["held"] == receipt["held"],
        "scope": all(data["scope"][name] == receipt[name] for name in _AS_IN_RECEIPT),
    }
    return [f"{name} is not that of the audit chain" for name, same in said.items() if not same]


def _against_stores(data: Mapping[str, Any]) -> list[str]:
    """Return where the level says more than what was found in the stores."""
    stores = {one["name"]: Store(**one) for one in data["stores"]}
    level, said = data["level"], data["receipt"]["level"]
    found = [] if level == said else ["the level is not that of the receipt"]
    if level not in {"held", "suppressed", "erased", "scrubbed"}:
        return [*found, "the level is none there is"]
    needed = {"held": (), "suppressed": (), "erased": ("records",)}.get(level, ("records", "files"))
    missed = [one for one in needed if one not in stores or not stores[one].clean]
    return [*found, *(f"the level is {level}, and {one} are not clean" for one in missed)]


def _said(one: Store) -> str:
    if one.after is None:
        return "not looked at"
    return f"{'not counted' if one.before is None else one.before} before, {one.after} after"
