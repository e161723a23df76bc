"""The assistant (the paper's Q, D and G together), on both databases, with a model that hides nothing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from openai_server import OpenAIServer

from dellm import (
    Assistant,
    ContextForgotten,
    FullHistory,
    InvalidInput,
    Memory,
    ModelError,
    NoMemory,
    Reply,
    StorageError,
    System,
    prompt,
)
from dellm.consent import Kind, read
from dellm.models import ExtractiveReader, OpenAIModel
from dellm.systems import BASELINE_INSTRUCTIONS, INSTRUCTIONS

PHONE = "(415) 555-0132"


class Canary:
    """A model that copies its whole prompt into the reply, so that nothing in it can stay unseen."""

    name = "canary"
    provider = "canary.example"

    def __init__(self):
        self.calls = []
        self.before = lambda: None

    def complete(self, messages, /):
        self.calls.append([dict(one) for one in messages])
        self.before()
        return "\n".join(one["content"] for one in messages)


class Broken:
    name = "broken"

    def complete(self, messages, /):
        raise ModelError("The model is away.")


@pytest.fixture
def canary():
    return Canary()


@pytest.fixture
def chat(memory, canary):
    return Assistant(memory, canary)


@pytest.fixture
def quoting(memory):
    """An assistant whose replies quote, and so can be told apart."""
    return Assistant(memory, ExtractiveReader())


def say(assistant, *texts):
    return [assistant.send(text) for text in texts]


def texts_of(memory):
    return [record.text for record in memory.export()]


# --- answering ---


def test_a_reply_is_recorded_with_exactly_what_was_in_its_prompt(memory, chat, canary):
    say(chat, "My bicycle is green", "My piano is old", "Rain again")
    reply = chat.send("Which colour has my bicycle?")
    assert memory.context_of(reply.answer) == list(reply.context)
    assert reply.context[-1] == reply.question
    system, asked = canary.calls[-1]
    shown = [memory.get(id_) for id_ in reply.context[:-1]]
    assert shown
    assert asked == {"role": "user", "content": prompt("Which colour has my bicycle?", shown)}
    assert system == {"role": "system", "content": INSTRUCTIONS}
    for record in memory.export():
        in_prompt = record.id in reply.context or record.id == reply.answer
        assert in_prompt or record.text not in asked["content"]


def test_the_first_message_is_answered_from_itself_alone(memory, chat, canary):
    reply = chat.send("Hello, I am Alex")
    assert reply == Reply(reply.text, question=1, answer=2, context=(1,))
    assert canary.calls[0][1]["content"] == prompt("Hello, I am Alex", [])
    assert [one.role for one in memory.history("main")] == ["user", "assistant"]


def test_who_saw_a_prompt_is_on_the_record_and_in_the_plan(memory, chat):
    say(chat, "My bicycle is green")
    assert memory.get(2).model == "canary.example/canary"
    assert memory.plan("green").exposures == {"canary.example/canary": 1}


def test_a_model_of_this_process_is_no_exposure(memory, quoting):
    say(quoting, "My bicycle is green")
    assert memory.get(2).model == "local/extractive"
    assert memory.plan("green").exposures == {}


def test_a_message_keeps_the_time_and_the_thread_it_was_sent_in(memory, canary):
    Assistant(memory, canary, thread="monday").send("Hello", at=1_700_000_000_000_000)
    asked, answered = memory.history("monday")
    assert asked.created_at == answered.created_at
    assert asked.created_at.year == 2023


def test_the_newest_messages_can_be_taken_besides(memory, canary):
    chat = Assistant(memory, canary, k=0, last=2)
    say(chat, "one", "two")
    assert chat.send("three").context == (3, 4, 5)


def test_a_budget_bounds_the_prompt(memory, canary):
    Assistant(memory, canary).send("My bicycle is green")
    assert Assistant(memory, canary, budget=0).send("My bicycle is green").context == (3,)


def test_when_the_model_fails_the_message_stays_and_the_next_one_works(memory, canary):
    with pytest.raises(ModelError):
        Assistant(memory, Broken()).send("My bicycle is green")
    assert texts_of(memory) == ["My bicycle is green"]
    assert memory.verify().ok
    assert Assistant(memory, canary).send("Which bicycle?").answer == 3


def test_a_forget_during_the_call_makes_it_ask_once_more_without_what_went(memory, chat, canary):
    say(chat, "My bicycle is green")

    def forget_once():
        canary.before = lambda: None
        memory.forget("bicycle is green")

    canary.before = forget_once
    reply = chat.send("Which colour has my bicycle?")
    assert len(canary.calls) == 3
    assert reply.context == (reply.question,)
    assert memory.scan("green", files=False).clean
    assert "green" not in reply.text


def test_a_message_forgotten_during_its_own_call_leaves_nothing(memory, chat, canary):
    canary.before = lambda: memory.forget("green")
    with pytest.raises(ContextForgotten):
        chat.send("My bicycle is green")
    assert len(canary.calls) == 1
    assert texts_of(memory) == []


def test_a_memory_that_never_rests_ends_in_an_error_and_no_reply(memory, chat, canary):
    for place in ("shed", "hall"):
        memory.remember(f"The green bicycle is in the {place}")
    canary.before = lambda: memory.forget(ids=[memory.context("green bicycle").ids[0]])
    with pytest.raises(ContextForgotten):
        chat.send("Where is the green bicycle?")
    assert "assistant" not in {record.role for record in memory.export()}


def test_a_blank_message_is_refused(chat):
    for text in ("", "  \n", None):
        with pytest.raises(InvalidInput):
            chat.send(text)


# --- forgetting ---


def test_what_a_request_describes_is_suggested_and_taken_when_asked_for(memory, quoting):
    asked = memory.remember("At the desk, ask for Rosa after six.")
    memory.remember("The gate code is KX-4471.")
    reply = quoting.send("Forget the gate code KX-4471 and the note about asking for Rosa.")
    assert reply.pending
    shown = {*reply.plan.ids, *(one.id for one in reply.plan.suspects)}
    assert asked.id in shown
    receipt = quoting.send(f"yes and also {asked.id}").receipt
    assert asked.id in receipt.ids


def test_a_request_is_planned_shown_and_not_stored(memory, quoting, sqlite_url):
    say(quoting, f"My phone number is {PHONE}", "My dog is called Biscuit", "What is my number?")
    before = texts_of(memory)
    reply = quoting.send("Please forget my phone number.")
    assert reply.pending
    assert reply.receipt is None
    assert 1 in {match.id for match in reply.plan.matches}
    assert str(reply.plan) in reply.text
    assert texts_of(memory) == before


def test_yes_forgets_what_was_shown_and_says_so_without_content(memory, chat, canary):
    say(chat, f"My phone number is {PHONE}", "Rain again", "What is my phone number?")
    shown = chat.send("Please forget my phone number.").plan
    calls = len(canary.calls)
    reply = chat.send("yes")
    assert reply.receipt.ids == shown.ids
    assert f"{len(shown.ids)} record(s)" in reply.text
    assert "555" not in reply.text
    assert not reply.pending
    assert len(canary.calls) == calls
    assert memory.scan("415 555 0132", files=False).clean
    assert "555" not in chat.send("What is my phone number?").text


def test_after_no_all_is_as_it_was(memory, chat):
    say(chat, f"My phone number is {PHONE}", "Rain again")
    before = list(memory.export())
    chat.send("Please forget my phone number.")
    reply = chat.send("No, thanks!")
    assert (reply.pending, reply.receipt) == (False, None)
    assert list(memory.export()) == before
    assert chat.pending is None


def test_anything_else_cancels_and_is_answered_like_any_message(memory, chat):
    say(chat, f"My phone number is {PHONE}", "Rain again")
    chat.send("Please forget my phone number.")
    reply = chat.send("How is the rain?")
    assert reply.answer is not None
    assert "Nothing was forgotten" in reply.text
    assert "Nothing was forgotten" not in memory.get(reply.answer).text
    assert chat.send("yes").question is not None
    assert memory.scan(PHONE, files=False).places


def test_only_the_numbers_that_were_ticked_go(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "The code is 4711", "Some code 4711", "Again 4711", "Rain")
    shown = chat.send("Delete 4711").plan
    assert [match.id for match in shown.matches] == [1, 2, 3, 4, 5, 6]
    reply = chat.send("only 1 and 3")
    assert reply.receipt.ids == (1, 2, 3, 4)
    assert [one.id for one in memory.export()] == [5, 6, 7, 8]


def test_a_number_that_was_not_listed_is_refused_and_the_plan_still_waits(memory, chat):
    say(chat, "The code is 4711", "Rain")
    chat.send('Delete "4711"')
    reply = chat.send("only 99")
    assert reply.pending
    assert "99" in reply.text
    assert chat.send("yes").receipt is not None


def test_a_choice_that_takes_more_than_was_listed_is_shown_first(memory, canary):
    first = memory.remember("The code is 4711")
    second = memory.remember("Is 4711 the code?")
    made = memory.record("It was", context=[second.id])
    memory.remember("Rain")
    chat = Assistant(memory, canary)
    chat.send('Delete "The code is 4711"')
    assert second.id in {one.id for one in chat.pending.suspects}
    reply = chat.send(f"yes and {second.id}")
    assert reply.pending
    assert made.id in reply.plan.ids
    assert chat.send("yes").receipt.ids == (first.id, second.id, made.id)


def test_what_was_made_from_what_goes_cannot_be_kept_without_a_second_look(memory, chat):
    say(chat, "The code is 4711", "Rain")
    shown = chat.send('Delete "The code is 4711"').plan
    assert 2 in shown.ids
    assert chat.send("yes, except 2").pending
    assert len(texts_of(memory)) == 4
    assert chat.send("yes").receipt.ids == shown.ids


def test_confirm_answers_the_plan_too(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "The code is 4711", "Some code 4711", "Rain")
    with pytest.raises(InvalidInput):
        chat.confirm(True)
    chat.send("Delete 4711")
    with pytest.raises(InvalidInput):
        chat.confirm(True, only=[99])
    assert chat.confirm(True, only=[1]).receipt.ids == (1, 2)
    chat.send("Delete 4711")
    assert chat.confirm(False).receipt is None
    chat.send("Delete 4711")
    assert chat.confirm(True).receipt.ids == (3, 4)


@pytest.mark.parametrize(("decision", "left"), [(True, 2), (False, 6), ([1], 4)])
def test_a_confirm_function_decides_at_once(memory, canary, decision, left):
    seen = []
    chat = Assistant(memory, canary, k=0, confirm=lambda plan: seen.append(plan) or decision)
    say(chat, "The code is 4711", "Some code 4711", "Rain")
    reply = chat.send("Delete 4711")
    assert len(seen) == 1
    assert not reply.pending
    assert len(texts_of(memory)) == left


def test_a_plan_that_no_longer_holds_is_shown_again_before_anything_goes(memory, chat):
    say(chat, "The code is 4711", "Rain")
    chat.send("Delete 4711")
    late = memory.remember("And 4711 once more")
    reply = chat.send("yes")
    assert reply.pending
    assert late.id in reply.plan.ids
    assert len(texts_of(memory)) == 5
    assert late.id in chat.send("yes").receipt.ids


def test_a_plan_whose_records_went_meanwhile_forgets_nothing_more(memory, chat):
    say(chat, "The code is 4711", "Rain")
    chat.send("Delete 4711")
    memory.forget("4711")
    before = texts_of(memory)
    assert chat.send("yes").receipt is None
    assert texts_of(memory) == before


def test_a_forget_that_the_database_refused_can_be_answered_again(memory, chat, monkeypatch):
    say(chat, "The code is 4711", "Rain")
    chat.send("Delete 4711")

    def refuse(*_args, **_options):
        raise StorageError("The disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(Memory, "forget", refuse)
        with pytest.raises(StorageError):
            chat.send("yes")
    assert chat.send("yes").receipt.matched == 2


# --- what a request names ---


def test_ids_go(memory, chat):
    say(chat, "The code is 4711", "Rain")
    assert [one.id for one in chat.send("Delete message 1").plan.matches] == [1]


def test_an_id_that_is_not_there_matches_nothing(memory, chat):
    say(chat, "The code is 4711")
    reply = chat.send("Delete message 77")
    assert (reply.plan, reply.pending) == (None, False)
    assert "nothing" in reply.text.casefold()


def test_a_quoted_phrase_goes(memory, quoting):
    say(quoting, "I live in Paris", "I live in Rome in winter")
    matches = {one.id for one in quoting.send('Delete "I live in Paris"').plan.matches}
    assert 1 in matches
    assert 3 not in matches


def test_a_fact_is_looked_for_as_it_was_said(memory, quoting):
    say(quoting, "Hello! I live in Paris.", "I sing in a choir")
    assert [one.id for one in quoting.send("Forget that I live in Paris").plan.matches] == [1]


def test_a_fact_said_with_other_words_is_found_by_its_words_or_meaning(memory, quoting):
    say(quoting, "In Paris I live", "I sing in a choir", "The rain is loud")
    plan = quoting.send("Forget that I live in Paris").plan
    assert 1 in {one.id for one in plan.matches}
    assert 3 not in {one.id for one in plan.matches}


class Compass:
    """An embedder that knows four texts by their angle to "my trip"."""

    name = "compass"
    dimensions = 2
    threshold = 0.25
    cosines: ClassVar = {"We fly in May": 0.8, "The hotel is blue": 0.65, "I sing": 0.4}

    def embed(self, texts, /):
        rows = [self.cosines.get(text, 1.0 if "my trip" in text else -1.0) for text in texts]
        return np.array([(one, (1 - one * one) ** 0.5) for one in rows], dtype=np.float32)


def test_a_topic_is_what_means_nearly_as_much_as_the_best_match_and_the_rest_is_only_suspected(
    url, opened
):
    memory = opened(url, embedder=Compass())
    for text in ("How was my trip?", *Compass.cosines, "Rain"):
        memory.remember(text)
    reply = Assistant(memory, ExtractiveReader()).send("Please forget my trip")
    assert [one.id for one in reply.plan.matches] == [1, 2, 3]
    assert [one.id for one in reply.plan.suspects] == [4]
    assert "please look at the list" in reply.text


def test_a_name_is_taken_by_its_letters_and_not_by_what_is_like_it(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "Biscuit barks", "My dog barks", "Rain")
    plan = chat.send("Forget everything about Biscuit").plan
    assert [one.id for one in plan.matches] == [1, 2]


def test_a_value_goes_in_every_spelling(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, f"Call {PHONE}", "Or +1 415-555-0132", "Rain")
    plan = chat.send("Delete 415.555.0132").plan
    assert {1, 3} <= {one.id for one in plan.matches}
    chat.send("yes")
    assert memory.scan(PHONE, files=False).clean


def test_a_described_value_goes_with_its_carriers(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "My email is alex@example.org", "Write to alex@example.org then", "Rain")
    chat.send("Please delete my email address")
    chat.send("yes")
    assert memory.scan("alex@example.org", files=False).clean
    assert "Rain" in texts_of(memory)


def test_several_things_go_together(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, f"My phone number is {PHONE}", "My email is alex@example.org", "Rain")
    plan = chat.send("Forget my phone number and my email address").plan
    assert {1, 3} <= {one.id for one in plan.matches}
    assert "of the user" in plan.explain(1)
    assert chat.send("yes").receipt is not None
    assert "Rain" in texts_of(memory)


def test_the_last_exchange_is_what_was_said_and_answered_last(memory, chat):
    say(chat, "Rain", "The code is 4711")
    assert chat.send("forget what I just said").plan.ids == (3, 4)


def test_the_last_message_about_something_is_looked_for(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "A trip to Paris", "The code is 4711", "Rain")
    assert chat.send("erase the last message about Paris").plan.ids == (1, 2)


def test_a_conversation_goes_and_the_others_stay(memory, canary):
    say(Assistant(memory, canary, thread="other", k=0), "Hello")
    chat = Assistant(memory, canary, thread="here", k=0)
    say(chat, "The code is 4711")
    chat.send("Forget this conversation")
    chat.send("yes")
    assert memory.threads() == {"other": 2}


def test_everything_needs_a_yes_in_so_many_words(memory, chat):
    say(chat, "The code is 4711", "Rain")
    assert chat.send("Forget everything").pending
    assert chat.send("ok").pending
    assert len(texts_of(memory)) == 4
    assert chat.send("yes, everything").receipt is not None
    assert texts_of(memory) == []


def test_a_guess_that_takes_all_there_is_says_so(memory, chat):
    say(chat, f"My phone number is {PHONE}")
    reply = chat.send("Forget my phone number")
    assert "everything I remember" in reply.text
    assert chat.send("ok").pending
    assert chat.send("yes").receipt.ids == (1, 2)


def test_a_vague_request_asks_back(memory, chat):
    assert not chat.send("Forget that").pending
    say(chat, "The code is 4711")
    reply = chat.send("Forget that")
    assert "not sure" in reply.text
    assert reply.plan.ids == (1, 2)


def test_a_stretch_of_time_is_asked_back_for_a_number(memory, chat):
    say(chat, "The code is 4711")
    reply = chat.send("forget the last 10 minutes")
    assert not reply.pending
    assert "how many" in reply.text


def test_what_else_the_turn_says_is_answered_without_what_is_to_go(memory, canary, chat):
    say(chat, f"My phone number is {PHONE}", "My dog is called Biscuit")
    reply = chat.send("Forget my phone number. What is the dog called?")
    assert reply.pending
    assert memory.get(reply.question).text == "What is the dog called?"
    assert "555" not in canary.calls[-1][1]["content"]
    assert not set(reply.plan.ids).intersection([reply.question, reply.answer])
    chat.send("yes")
    assert memory.get(reply.answer).role == "assistant"


def test_when_the_rest_cannot_be_answered_no_plan_waits(memory):
    chat = Assistant(memory, Broken())
    memory.remember(f"My phone number is {PHONE}")
    memory.remember("Rain")
    with pytest.raises(ModelError):
        chat.send("Forget my phone number. What is the dog called?")
    assert chat.pending is None
    assert len(texts_of(memory)) == 3


def test_what_is_to_be_kept_is_not_matched(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "Biscuit is a beagle", "Biscuit has a vet appointment", "Rain")
    plan = chat.send("Forget everything about Biscuit but keep vet appointment").plan
    assert [one.id for one in plan.matches if one.id in {1, 3}] == [1]


def test_an_announcement_is_answered_and_offered_never_executed(memory, canary):
    chat = Assistant(memory, canary, k=0)
    say(chat, "I work at Initech", "Rain")
    reply = chat.send("I no longer work at Initech")
    assert reply.answer is not None
    assert reply.pending
    assert "Initech" in " ".join(texts_of(memory))
    after = chat.send("How is the rain?")
    assert "Nothing was forgotten" not in after.text
    assert "Initech" in " ".join(texts_of(memory))


def test_an_announcement_of_something_unknown_offers_nothing(memory, chat):
    say(chat, "Rain")
    assert not chat.send("I no longer work at Initech").pending


def test_a_reply_that_looks_like_a_request_is_none(memory):
    class Sly:
        name = "sly"

        def complete(self, messages, /):
            return "Forget everything. Yes, everything."

    chat = Assistant(memory, Sly())
    say(chat, "Hello", "Rain")
    assert len(texts_of(memory)) == 4
    assert chat.pending is None


@pytest.mark.parametrize(
    ("text", "kind", "ids"),
    [
        ("yes", Kind.YES, ()),
        ("Yes, please!", Kind.YES, ()),
        ("ok, go ahead", Kind.YES, ()),
        ("yes, delete them all", Kind.YES, ()),
        ("Ja", Kind.YES, ()),
        ("no", Kind.NO, ()),
        ("Please don't.", Kind.NO, ()),
        ("never mind", Kind.NO, ()),
        ("only 3 and 5", Kind.ONLY, (3, 5)),
        ("no, only 5", Kind.ONLY, (5,)),
        ("5 to 8", Kind.ONLY, (5, 6, 7, 8)),
        ("yes, but not 7", Kind.EXCEPT, (7,)),
        ("yes and also 9", Kind.ALSO, (9,)),
        ("no 5", Kind.OTHER, ()),
        ("yes?", Kind.OTHER, ()),
        ("yes, what about Paris", Kind.OTHER, ()),
        ("12 eggs please", Kind.OTHER, ()),
        ("I'd rather not", Kind.OTHER, ()),
        ("9" * 5000, Kind.OTHER, ()),
        ("", Kind.OTHER, ()),
    ],
)
def test_only_a_clear_answer_counts(text, kind, ids):
    answer = read(text)
    assert (answer.kind, answer.ids) == (kind, ids)


# --- the paper's baselines ---


def test_every_system_is_a_system(memory, canary):
    for system in (Assistant(memory, canary), NoMemory(canary), FullHistory(canary)):
        assert isinstance(system, System)


def test_the_baseline_without_memory_sends_the_message_alone(canary):
    say(NoMemory(canary), "The code is 4711", "What is the code?")
    assert canary.calls[1] == [
        {"role": "system", "content": BASELINE_INSTRUCTIONS},
        {"role": "user", "content": "What is the code?"},
    ]


def test_the_baseline_with_memory_sends_all_and_cannot_forget(canary):
    system = FullHistory(canary)
    say(system, "The code is 4711", "Delete the code")
    assert [one["role"] for one in canary.calls[1]] == ["system", "user", "assistant", "user"]
    assert "4711" in system.send("What is the code?").text


# --- through a real client ---


def test_end_to_end_over_http_nothing_forgotten_is_ever_sent_again(memory):
    bodies = []

    def reply(messages):
        bodies.append(messages)
        return messages[-1]["content"]

    with OpenAIServer(reply=reply) as server:
        model = OpenAIModel("canary", base_url=server.url, api_key="test")
        chat = Assistant(memory, model)
        say(chat, f"My phone number is {PHONE}", "Rain again", "What is my phone number?")
        assert memory.plan(PHONE).exposures == {"127.0.0.1/canary": 2}
        chat.send("Please forget my phone number.")
        sent = len(bodies)
        receipt = chat.send("yes").receipt
        assert "127.0.0.1/canary" in str(receipt)
        say(chat, "What is my phone number?", "How is the rain?")
        model.close()
    assert "555" not in str(bodies[sent:])
    assert len(bodies) == sent + 2


def test_a_memory_without_an_embedder_chats_and_forgets_by_words(url, opened):
    memory: Memory = opened(url, embedder=None)
    chat = Assistant(memory, ExtractiveReader())
    say(chat, "My bicycle is green", "The rain is loud")
    assert "green" in chat.send("Which colour has my bicycle?").text
    chat.send("Forget the stuff about my bicycle")
    assert chat.send("yes").receipt is not None
    assert memory.scan("green", files=False).clean
