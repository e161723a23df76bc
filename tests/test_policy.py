"""A policy's decisions are functions of values, each with a reason; its mistakes have lines."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dellm.errors import InvalidInput, PolicyError, PolicyRefused
from dellm.governance import ASKERS, BASES, CREATORS, UNTRUSTED
from dellm.policy import DAY, Policy, may_act
from dellm.policy_reading import CONFIRM
from dellm.policy_values import By, Class, Decision
from dellm.records import KINDS, Draft

SECRET = "zyxcanaryword"
AT = 1_000 * DAY
SHIPPED = Policy.shipped()
SEED_CLASSES = (
    *("user_preference", "project_decision", "operational_state", "customer_context"),
    *("candidate_context", "security_incident", "credential_like", "derived_summary"),
    *("embedding", "audit_proof"),
)


def draft(**said: object) -> Draft:
    return Draft(SECRET, **said)  # type: ignore[arg-type] # of the tests' own making


# the policy that ships


def test_the_seeds_classes_ship() -> None:
    assert tuple(one.name for one in SHIPPED.classes) == SEED_CLASSES


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("sensitivity", [None, "confidential", "of their own making"])
def test_what_names_no_class_is_stored_for_good_and_read_by_all(
    kind: str, sensitivity: str | None
) -> None:
    plain = draft(kind=kind, sensitivity=sensitivity)
    assert SHIPPED.retention_for(plain, AT).until is None
    assert SHIPPED.may_read(plain).allowed
    assert SHIPPED.may_export(plain).allowed
    assert SHIPPED.may_erase(plain).allowed
    decided = SHIPPED.may_write(plain)
    assert decided.allowed
    assert decided.waits == (kind == "inferred" and sensitivity is not None)


@pytest.mark.parametrize(
    ("retention", "days"),
    [
        ("user_preference", 730),
        ("project_decision", None),
        ("operational_state", 7),
        ("customer_context", 365),
        ("candidate_context", 180),
        ("security_incident", 730),
    ],
)
def test_a_named_class_gives_its_days(retention: str, days: int | None) -> None:
    found = SHIPPED.retention_for(draft(retention=retention), AT)
    assert found.retention == retention
    assert found.days == days
    assert found.until == (None if days is None else AT + days * DAY)
    assert found.reason == (
        "nothing limits it" if days is None else f"class {retention} has {days} days"
    )


def test_a_record_may_be_kept_less_long_than_its_class_and_never_longer() -> None:
    sooner = draft(retention="operational_state", retention_until=AT + DAY)
    assert SHIPPED.retention_for(sooner, AT).until == AT + DAY
    later = draft(retention="operational_state", retention_until=AT + 99 * DAY)
    assert SHIPPED.retention_for(later, AT).until == AT + 7 * DAY


def test_days_count_from_when_it_was_made() -> None:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    found = SHIPPED.retention_for(draft(retention="operational_state", created_at=made), AT)
    assert found.until == int(datetime(2026, 1, 8, tzinfo=UTC).timestamp() * 1_000_000)


def test_credential_like_data_never_becomes_memory() -> None:
    decided = SHIPPED.may_write(draft(retention="credential_like"))
    assert not decided
    assert decided.reason == "class credential_like refuses it"


@pytest.mark.parametrize("retention", ["embedding", "audit_proof"])
def test_classes_of_no_records_take_none(retention: str) -> None:
    assert not SHIPPED.may_write(draft(retention=retention))


def test_a_summary_lives_as_long_as_its_sources() -> None:
    found = SHIPPED.retention_for(draft(kind="summary"), AT)
    assert (found.retention, found.with_sources, found.until) == ("derived_summary", True, None)


def test_candidates_and_incidents_are_for_their_roles() -> None:
    candidate, incident = (
        draft(retention="candidate_context"),
        draft(retention="security_incident"),
    )
    assert not SHIPPED.may_read(candidate)
    assert not SHIPPED.may_read(candidate, By("human", "support"))
    assert SHIPPED.may_read(candidate, By("human", "recruiter"))
    assert not SHIPPED.may_read(incident, By("human", "recruiter"))
    assert SHIPPED.may_read(incident, By("human", "legal"))
    assert not SHIPPED.may_export(incident, By("human", "legal"))
    assert SHIPPED.closed_to(None) == (("candidate_context", "security_incident"), ())
    assert SHIPPED.closed_to("recruiter") == (("security_incident",), ())


def test_the_shipped_policy_reads_the_same_as_its_file() -> None:
    assert Policy.parse("") == SHIPPED


# who asks


@pytest.mark.parametrize("who", sorted(ASKERS))
def test_nothing_is_done_on_the_word_of_a_tool_a_document_or_a_model(who: str) -> None:
    trusted = who not in UNTRUSTED
    assert may_act(who).allowed is trusted
    assert SHIPPED.may_erase(draft(), who).allowed is trusted
    assert SHIPPED.may_export(draft(), who).allowed is trusted
    assert {"tool", "document", "model"} <= UNTRUSTED


def test_who_is_none_of_the_askers_is_an_error() -> None:
    with pytest.raises(InvalidInput):
        SHIPPED.may_erase(draft(), "the wind")


# what a workspace's own policy says

OWN = """
purpose_required = true
confirm = "always"
allowed = ["note", "operational_state"]
export = ["auditor"]
basis = "contract"

[classes.note]
days = 10
erase = ["admin"]

[sensitivities.personal]
write = "confirm"
read = ["hr"]
export = false

[[rules]]
name = "support"
when = { thread = "support-*", role = "user", subject = true }
class = "note"
purpose = "support"
sensitivity = "personal"
basis = "consent"

[[rules]]
name = "scratch"
when = { kind = ["tool", "item"], created_by = "system" }
days = 1
purpose = "operation"

[[rules]]
name = "no gossip"
when = { purpose = "gossip", sensitivity = "regulated" }
write = "refuse"

[[rules]]
name = "anything else"
purpose = "general"
"""
MINE = Policy.parse(OWN)
SUPPORT = draft(thread="support-7", subject="Ada")


def test_a_rule_says_what_a_record_does_not() -> None:
    assert MINE.class_of(SUPPORT) == Class("note", days=10, erase=("admin",))
    assert MINE.seen(SUPPORT).purpose == "support"
    assert MINE.seen(SUPPORT).sensitivity == "personal"
    assert MINE.seen(SUPPORT).basis == "consent"
    assert MINE.seen(dataclasses.replace(SUPPORT, purpose="own")).purpose == "own"


@pytest.mark.parametrize(
    "other",
    [
        {"thread": "sales-7"},
        {"thread": None},
        {"role": "assistant"},
        {"subject": None},
    ],
)
def test_a_rule_matches_only_where_all_it_names_holds(other: dict[str, str | None]) -> None:
    one = dataclasses.replace(SUPPORT, **other)  # type: ignore[arg-type]
    assert MINE.class_of(one) is None
    assert MINE.seen(one).purpose == "general"


def test_a_rule_may_say_for_how_long() -> None:
    tool = draft(kind="tool", role="tool")
    assert MINE.retention_for(tool, AT).until == AT + DAY
    assert MINE.retention_for(dataclasses.replace(tool, created_by="human"), AT).until is None


def test_the_strictest_of_rule_class_and_sensitivity_counts() -> None:
    assert MINE.may_write(SUPPORT).waits
    gossip = draft(purpose="gossip", sensitivity="regulated")
    assert MINE.may_write(gossip) == Decision(False, "rule no gossip refuses it")
    assert MINE.may_write(dataclasses.replace(gossip, sensitivity=None)).allowed


def test_only_allowed_classes_are_stored() -> None:
    assert MINE.may_write(draft(retention="note")).allowed
    refused = MINE.may_write(draft(retention="customer_context"))
    assert refused.reason == "class customer_context is not allowed here"
    unknown = MINE.may_write(draft(retention=SECRET))
    assert not unknown
    assert SECRET not in unknown.reason


def test_purposes_may_be_required() -> None:
    strict = Policy.parse("purpose_required = true")
    assert not strict.may_write(draft())
    assert strict.may_write(draft(purpose="support"))
    assert strict.may_write(draft(kind="state")), "an agent's own state is no memory"


def test_all_that_is_inferred_may_have_to_wait() -> None:
    assert MINE.may_write(draft(kind="inferred")).waits
    assert not SHIPPED.may_write(draft(kind="inferred")).waits


def test_exports_may_be_for_roles_or_for_nobody() -> None:
    assert not MINE.may_export(draft())
    assert MINE.may_export(draft(), "system")
    assert MINE.may_export(draft(), By("admin", "auditor"))
    assert not MINE.may_export(SUPPORT, By("admin", "auditor"))
    nobody = Policy.parse('export = "nobody"')
    assert nobody.may_export(draft(), By("admin", "auditor")).reason == "no exports"


def test_a_class_may_be_erased_by_its_roles_only() -> None:
    assert not MINE.may_erase(draft(retention="note"))
    assert MINE.may_erase(draft(retention="note"), By("human", "admin"))


def test_memory_may_be_switched_off() -> None:
    off = Policy.parse("memory = false")
    assert not off.may_write(draft())
    assert not off.may_read(draft())
    assert off.may_export(draft())
    assert off.may_erase(draft())


def test_a_decision_that_is_required_raises_without_content() -> None:
    with pytest.raises(PolicyRefused) as caught:
        MINE.may_write(draft(retention=SECRET, thread=SECRET, purpose=SECRET)).require()
    assert SECRET not in str(caught.value)
    MINE.may_write(draft()).require()


# decisions are total, deterministic and silent

words = st.sampled_from([None, SECRET, "personal", "regulated", "gossip"])
drafts = st.builds(
    Draft,
    st.just(SECRET),
    role=st.sampled_from(["user", "assistant", "tool", "system", SECRET]),
    thread=st.sampled_from([None, "support-1", SECRET]),
    kind=st.sampled_from(sorted(KINDS)),
    subject=words,
    purpose=words,
    sensitivity=words,
    retention=st.sampled_from([None, "note", SECRET, *SEED_CLASSES]),
    created_by=st.sampled_from([None, *CREATORS]),
    basis=st.sampled_from([None, *BASES]),
    retention_until=st.none() | st.integers(0, 10**15),
    created_at=st.none() | st.integers(0, 10**15),
)
asked = st.builds(By, st.sampled_from(sorted(ASKERS)), st.sampled_from([None, "hr", SECRET]))


@given(st.sampled_from([SHIPPED, MINE]), drafts, asked)
def test_decisions_are_total_and_say_no_content(policy: Policy, one: Draft, by: By) -> None:
    again = Policy.parse(OWN if policy is MINE else "")
    for name in ("may_write", "may_read", "may_export", "may_erase"):
        decided = getattr(policy, name)(one, by)
        assert decided == getattr(again, name)(one, by)
        assert decided.reason
        assert SECRET not in decided.reason
        assert decided.allowed or not decided.waits
    kept = policy.retention_for(one, AT)
    assert kept == again.retention_for(one, AT)
    assert SECRET not in kept.reason
    if kept.until is not None and one.retention_until is not None:
        assert kept.until <= int(one.retention_until)


@given(st.sampled_from([SHIPPED, MINE]), drafts, asked)
def test_what_is_closed_to_a_role_is_what_it_may_not_read(
    policy: Policy, one: Draft, by: By
) -> None:
    classes, sensitivities = policy.closed_to(by.role)
    kept = policy.class_of(one)
    closed = (kept is not None and kept.name in classes) or (
        policy.seen(one).sensitivity in sensitivities
    )
    assert policy.may_read(one, by).allowed is not closed


# mistakes

MISTAKES = [
    ("memory = 1", 1, "memory is neither true nor false"),
    ("\n\nmemroy = true", 3, "memroy is none of"),
    ("confirm = 'never'", 1, f"confirm is none of {', '.join(sorted(CONFIRM))}"),
    ("basis = 'a whim'", 1, "basis is none of"),
    ("export = 3", 1, "export is neither a text nor a list"),
    ("allowed = [\n  'note',\n]", 1, "allowed has a class that is none of"),
    ("classes = 3", 1, "classes is no table"),
    ("[classes]\nnote = 3", 2, "classes.note is no table"),
    ("[classes.note]\n\ndays = 0", 3, "classes.note.days is no whole number of days"),
    ("[classes.note]\ndays = 1.5", 2, "classes.note.days"),
    ("[classes.note]\ndays = true", 2, "classes.note.days"),
    ("[classes.note]\ndays = 36501", 2, "classes.note.days"),
    ("[classes.note]\nlifetime = 'long'", 2, "classes.note.lifetime is none of sources"),
    ("[classes.note]\nkinds = ['gossip']", 2, "classes.note.kinds has a kind"),
    ("[classes.note]\nkinds = 'summary'", 2, "classes.note.kinds has summary, as class derived"),
    ("[classes.note]\nwrite = 'maybe'", 2, "classes.note.write is none of"),
    ("[classes.note]\nread = [1]", 2, "classes.note.read is neither"),
    ("[classes.note]\nread = ''", 2, "classes.note.read is neither"),
    ("[classes.note]\nexport = 'no'", 2, "classes.note.export is neither true nor false"),
    ("[classes.note]\nsensitivity = 'odd'", 2, "classes.note.sensitivity is none of"),
    ("[classes.note]\nrecords = 0", 2, "classes.note.records"),
    ("[classes.' ']", 1, "has a blank name"),
    ("classes.note.dyas = 3", 1, "classes.note.dyas is none of"),
    ("classes = { note = { dyas = 3 } }", 1, "classes.note.dyas is none of"),
    ("[sensitivities.odd]\ndays = 3", 2, "sensitivities.odd.days is none of"),
    ("rules = 3", 1, "rules is no list of tables"),
    ("rules = [1]", 1, "rules[1] is no table"),
    ("[rules]\nname = 'x'", 1, "rules is no list of tables"),
    ("[[rules]]\nname = 'x'", 1, "rules[1] says nothing"),
    ("[[rules]]\nname = ''\ndays = 1", 2, "rules[1].name is no text"),
    ("[[rules]]\ndays = 1\n\n[[rules]]\nclass = 'no'", 5, "rules[2].class is none of"),
    ("[[rules]]\nname='a'\ndays = 1\n[[rules]]\nname='a'\ndays=2", 5, "rules[2].name is that"),
    ("[[rules]]\ndays = 1\nwhen = 3", 3, "rules[1].when is no table"),
    ("[[rules]]\ndays = 1\nwhen = { kidn = 'tool' }", 3, "rules[1].when.kidn is none of"),
    ("[[rules]]\ndays = 1\n[rules.when]\nkind = 'x'", 4, "rules[1].when.kind has a kind"),
    ("[[rules]]\ndays = 1\n[rules.when]\n\nsubject = 'x'", 5, "rules[1].when.subject"),
    ("[[rules]]\ndays = 1\nwhen.created_by = 'fate'", 3, "rules[1].when.created_by has a creator"),
    ("[[rules]]\ndays = 1\nwhen.thread = [3]", 3, "rules[1].when.thread is neither"),
]


@pytest.mark.parametrize(("text", "line", "said"), MISTAKES, ids=[one[2] for one in MISTAKES])
def test_a_mistake_is_told_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text)
    assert caught.value.line == line
    assert f"Policy, line {line}: " in str(caught.value)
    assert said in str(caught.value)
    assert isinstance(caught.value, InvalidInput)


def test_what_is_no_toml_is_told_with_the_parsers_line() -> None:
    with pytest.raises(PolicyError, match=r"no TOML: .*line 2"):
        Policy.parse("memory = true\nmemory = true")
    with pytest.raises(PolicyError, match="nested too deeply"):
        Policy.parse("a = " + "[" * 5_000)
    with pytest.raises(PolicyError):
        Policy.parse("# " + "x" * (1 << 18))


def test_a_mistake_in_a_table_has_no_line() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.of({"memory": 1})
    assert caught.value.line is None
    assert "Policy, memory is neither" in str(caught.value)


comment = st.sampled_from(["", "# a comment", "   ", "#[classes.note]", '# days = """'])
before = st.lists(
    st.sampled_from(
        [
            "memory = true",
            "purpose_required = false",
            'basis = """contract"""',
            'confirm = "sensitive"',
            "allowed = [\n  'user_preference', # [[rules]]\n\n  'operational_state',\n]",
            "export = [\n  'auditor',\n  'admin']",
        ]
    ),
    unique=True,
)


@given(before, st.lists(comment), st.lists(comment), st.integers(0, 3))
def test_lines_are_found_whatever_stands_before(
    first: list[str], above: list[str], within: list[str], rules: int
) -> None:
    text = "\n".join([*first, *above, *["[[rules]]\ndays = 1"] * rules, "[classes.note]", *within])
    line = text.count("\n") + 2
    with pytest.raises(PolicyError) as caught:
        Policy.parse(f"{text}\ndays = -1\nexport = true\n[classes.other]\ndays = 3\n")
    assert caught.value.line == line


def test_a_policy_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(OWN, "utf-8")
    assert Policy.load(file) == Policy.load(str(file)) == MINE
    file.write_bytes(b"\xff")
    for path in (file, tmp_path / "none.toml", tmp_path, " ", 3):
        with pytest.raises(InvalidInput):
            Policy.load(path)  # type: ignore[arg-type]
