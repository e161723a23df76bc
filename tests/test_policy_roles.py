"""What the policy gives to some roles only is out of every other read, before anything is ranked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lines import nothing, run, said
from raw_tables import connected, rows_of

from dellm import Atom, Draft, Keep, Many, Memory, NotFound, Policy, Sources

Opened = Callable[..., Memory]
CANARY = "zyxcanaryword"


def reads(memory: Memory) -> dict[str, Any]:
    """Return what each read gives, as text."""
    found: dict[str, Any] = {
        f"search by {by}": memory.search(CANARY, by=by, limit=50, threshold=-1)
        for by in ("meaning", "keyword", "both")
    }
    return found | {
        "context": memory.context(CANARY, thread="t", k=50, last=50, threshold=-1).records,
        "history": memory.history("t"),
        "export": list(memory.export()),
        "waiting": memory.waiting(),
        "facts": memory.facts(),
        "conversation": memory.conversations.read("t", last=50, among="all"),
        "items": memory.items.search("store", (), limit=50),
        "summaries": memory.summaries.current("t").records,
        "answers": memory.answers.find(f"{CANARY}?", thread="t", by="exact", same_context=False),
    }


def telling(found: dict[str, Any]) -> list[str]:
    return [name for name, value in found.items() if CANARY in str(texts(value))]


def texts(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [texts(one) for one in value]
    record = getattr(value, "record", value)
    return getattr(record, "text", value)


@pytest.fixture
def hiring(memory: Memory) -> Memory:
    """Return a workspace in which a recruiter has worked."""
    recruiter = memory.acting(role="recruiter")
    noted = recruiter.remember(
        f"{CANARY} failed the interview", thread="t", retention="candidate_context"
    )
    reply = recruiter.record(f"no offer to {CANARY}", context=[noted.id], thread="t")
    recruiter.facts.state("offer", f"none to {CANARY}", context=[noted.id])
    recruiter.answers.keep(f"{CANARY}?", reply)
    recruiter.summaries.use(lambda _, told: " ".join(told))
    recruiter.summaries.rolling("t")
    item = Atom(Draft(f"{CANARY} item", role="item", kind="item"), made=Sources([noted.id]))
    recruiter.items.put("store", [Keep(("a",), "one", item)])
    memory.remember("lunch is at noon", thread="t")
    memory.index()
    return memory


@pytest.mark.parametrize("role", [None, "support", "recruiters", "%", "Recruiter"])
def test_no_read_of_another_role_has_it(hiring: Memory, role: str | None) -> None:
    assert telling(reads(hiring)) == []
    other = hiring.acting(role=role)
    assert telling(reads(other)) == []
    for id_ in range(1, 7):
        if CANARY in hiring.acting(overseer=True).get(id_).text:
            with pytest.raises(NotFound):
                other.get(id_)
    assert "lunch is at noon" in str(texts(other.history("t")))


def test_its_role_reads_it_and_so_does_an_overseer(hiring: Memory) -> None:
    for one in (hiring.acting(role="recruiter"), hiring.acting(overseer=True)):
        assert set(telling(reads(one))) >= {
            *("search by meaning", "search by keyword", "context", "history", "export"),
            *("facts", "items", "summaries", "answers"),
        }
    assert hiring.verify().ok


def test_what_another_role_makes_cannot_be_made_from_it(hiring: Memory) -> None:
    noted = next(one for one in hiring.acting(overseer=True).export() if CANARY in one.text)
    for one in (hiring, hiring.acting(role="support")):
        with pytest.raises(NotFound):
            one.record("so", context=[noted.id])


def test_a_user_and_a_role_count_both(memory: Memory) -> None:
    bob = memory.acting(user="bob", role="recruiter")
    noted = bob.remember(CANARY, retention="candidate_context")
    assert bob.get(noted.id) == noted
    for other in (
        memory.acting(user="bob"),
        memory.acting(role="recruiter"),
        memory.acting(user="eve", role="recruiter"),
        memory,
    ):
        with pytest.raises(NotFound):
            other.get(noted.id)


def test_two_limits_need_a_role_that_may_read_both(memory: Memory) -> None:
    memory.policies.set(
        Policy.parse(
            '[classes.a]\nread = ["x", "both"]\n[classes.b]\nread = ["y", "both"]\n'
            '[sensitivities.personal]\nread = ["x", "y", "both"]'
        )
    )
    boss = memory.acting(overseer=True)
    one = boss.remember("one", retention="a")
    two = boss.remember("two", retention="b", sensitivity="personal")
    both = boss.record("both", context=[one.id, two.id])
    may = {
        role: [id_ for id_ in (one.id, two.id, both.id) if _reads(memory.acting(role=role), id_)]
        for role in ("x", "y", "both", "z", None)
    }
    assert may == {"x": [one.id], "y": [two.id], "both": [1, 2, 3], "z": [], None: []}
    assert memory.verify().ok


def _reads(memory: Memory, id_: int) -> bool:
    try:
        memory.get(id_)
    except NotFound:
        return False
    return True


def test_who_may_read_a_class_is_what_the_policy_says_now(memory: Memory) -> None:
    noted = memory.remember(CANARY, retention="candidate_context")
    lead = memory.acting(role="lead")
    assert not _reads(lead, noted.id)
    memory.policies.set(Policy.parse('[classes.candidate_context]\nread = ["lead"]'))
    assert _reads(lead, noted.id)
    assert not _reads(memory.acting(role="recruiter"), noted.id)
    memory.policies.set(Policy.parse('[classes.candidate_context]\nread = "nobody"'))
    assert not _reads(lead, noted.id)


def test_a_class_of_a_kind_is_closed_as_well(memory: Memory) -> None:
    memory.policies.set(Policy.parse('[classes.files]\nkinds = ["document"]\nread = ["clerk"]'))
    page = memory.remember(CANARY, kind="document", role="document")
    assert not _reads(memory, page.id)
    assert _reads(memory.acting(role="clerk"), page.id)


def test_a_checkpoint_gives_other_roles_nothing_of_it(memory: Memory) -> None:
    memory.policies.set(
        Policy.parse('[[rules]]\nwhen = { thread = "t" }\nclass = "candidate_context"')
    )
    recruiter = memory.acting(role="recruiter")
    run(recruiter, "t").put("c1", messages=Many([], atoms=[said(CANARY, fid="m1")]))
    assert CANARY in str(recruiter.checkpoints.get("t", "", "c1", nothing))
    assert CANARY not in str(memory.checkpoints.get("t", "", "c1", nothing))


def test_its_owner_can_forget_it_without_a_role(hiring: Memory, url: str) -> None:
    assert len(hiring.plan(CANARY)) >= 4
    hiring.forget(CANARY, scrub=False)
    assert telling(reads(hiring.acting(overseer=True))) == []
    assert hiring.scan(CANARY, files=False).clean
    with connected(url) as raw:
        assert CANARY not in str(rows_of(raw)["audience"])
    assert hiring.verify().ok


def test_projects_read_each_others_records_only_where_the_policy_says_so(memory: Memory) -> None:
    one, two = memory.acting(project="one"), memory.acting(project="two")
    plan = one.remember("ship in May")
    assert not _reads(two, plan.id)
    assert memory.verify().ok
    memory.policies.set(Policy.parse("cross_project = true"))
    assert _reads(two, plan.id)
    assert two.search("May", by="keyword")[0].record.id == plan.id
    assert not _reads(memory, plan.id), "who is in no project reads none's"
    assert not _reads(memory.acting(user="eve"), plan.id)
    reply = two.record("then we wait", context=[plan.id])
    assert _reads(two, reply.id)
    memory.policies.set(None)
    assert _reads(two, reply.id)
    assert not _reads(one, reply.id)
    assert not _reads(two, plan.id)
    assert memory.verify().ok
