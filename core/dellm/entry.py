"""What is looked at before it is stored: every record's draft passes here, whatever wrote it.

The storing itself calls `Entering` (see storing), in the write transaction and before terms, rows or
vectors are made, so that no adapter can go around it. Values of an agent's own state (kind "state")
are left exactly as they are: a running graph reads them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import contents, credentials, masking
from .arguments import check_whole
from .errors import CredentialRefused, InvalidInput
from .policy import Policy
from .records import HIDDEN, Draft

POLICIES = ("redact", "refuse", "quarantine", "allow")
GUARDED = ("redact", "quarantine")


DAY = 24 * 3600 * 1_000_000


def lasting(days: int | None) -> int | None:
    """Return how many microseconds a guard lasts; InvalidInput for less than a day or 1,000 years."""
    if days is None:
        return None
    check_whole(days, "guard_days=")
    if not 1 <= days <= 365_000:
        raise InvalidInput("guard_days= is a day at least and 365,000 at most, or None.")
    return days * DAY


@dataclass(frozen=True, slots=True)
class Entering:
    """What an open memory does with what comes in.

    `credentials` is one of POLICIES, `guards` one of its GUARDED: what is done with what a guard knows
    (see guarding). `guard_for`: microseconds that a guard lasts, None for ever. `kept` are the guards
    that were read, by workspace, with their number. `policy` is what decides on writes where a workspace
    has none of its own (see governing), None for the one that ships; `policies` as `kept`.
    """

    credentials: str = "redact"
    guards: str = "redact"
    guard_for: int | None = None
    region: str = "US"
    policy: Policy | None = None
    policies: dict[int, tuple[int, Policy]] = field(default_factory=dict, repr=False, compare=False)
    kept: dict[int, tuple[int, object]] = field(default_factory=dict, repr=False, compare=False)

    def screened(self, drafts: Sequence[Draft], *, again: bool = False) -> list[Draft]:
        """Return the drafts as they may be stored.

        `again`: they hold what was stored before, as a copy or what is left after a forget: then
        nothing is refused or held, but redacted. Raises CredentialRefused.
        """
        listed = list(drafts)
        if self.credentials == "allow":
            return listed
        looked_at = [one for one in listed if one.kind not in HIDDEN]
        # One look at all of them: most writes hold nothing of the kind.
        if not credentials.may_hold(_said_by(looked_at)) and not any(
            one.payload and credentials.may_hold(one.payload) for one in looked_at
        ):
            return listed
        return [one if one.kind in HIDDEN else self._screened(one, again) for one in listed]

    def _screened(self, draft: Draft, again: bool) -> Draft:
        found = credentials.recognise(draft.text)
        beside = [one for one in _beside(draft) if credentials.recognise(one)]
        if not found and not beside:
            return draft
        if self.credentials == "refuse" and not again:
            raise CredentialRefused("What was to be stored holds a credential.")
        if self.credentials == "quarantine" and not again:
            return replace(draft, quarantined=True)
        clean = without(draft, credentials.redacted(draft.text, found), _holds)
        return replace(clean, payload=_masked(draft.payload))


def without(draft: Draft, text: str, holds: Any) -> Draft:
    """Return a draft with another text, less what of its metadata and governance holds the same."""
    metadata = draft.metadata or {}
    return replace(
        draft,
        text=text,
        metadata={key: value for key, value in metadata.items() if not holds({key: value})},
        subject=None if draft.subject and holds(draft.subject) else draft.subject,
        purpose=None if draft.purpose and holds(draft.purpose) else draft.purpose,
        sensitivity=None if draft.sensitivity and holds(draft.sensitivity) else draft.sensitivity,
        source=None if draft.source and holds(draft.source) else draft.source,
    )


def _holds(value: Any) -> bool:
    return any(credentials.recognise(one) for one in _said_in(value))


def _said_in(value: Any) -> list[str]:
    """Return the strings of a value, those of a mapping also with their names in front."""
    if isinstance(value, dict):
        named = [f'{key}: "{inner}"' for key, inner in value.items() if isinstance(inner, str)]
        return [*named, *(one for inner in value.values() for one in _said_in(inner))]
    return list(contents.strings(value))


def _said_by(drafts: Sequence[Draft]) -> bytes:
    said = [one.text for one in drafts]
    for one in drafts:
        if one.metadata or one.subject or one.purpose or one.sensitivity or one.source:
            said += [one.subject or "", one.purpose or "", one.sensitivity or "", one.source or ""]
            said += _said_in(dict(one.metadata or {}))
    return "\n".join(said).encode("utf-8", "surrogatepass")


def _beside(draft: Draft) -> list[str]:
    """Return what a draft says besides its text: metadata, governance, and the payload's text."""
    found = _said_in(dict(draft.metadata or {}))
    governance = (draft.subject, draft.purpose, draft.sensitivity, draft.source)
    found += [one for one in governance if one]
    if draft.payload and credentials.may_hold(draft.payload):
        found.append(masking.readable(draft.payload))
    return found


def _masked(payload: bytes | None) -> bytes | None:
    """Return a payload without its credentials, None where they cannot be taken out of it."""
    if payload is None or not credentials.may_hold(payload):
        return payload
    text = masking.readable(payload)
    found = [(one.start, one.end) for one in credentials.recognise(text)]
    clean = masking.masked(payload, text, found)
    return None if clean is None or credentials.recognise(masking.readable(clean)) else clean
