"""Language models: the wire, the local model, the reader that only quotes."""

from __future__ import annotations

import threading

import pytest
from openai_server import OpenAIServer
from weights_at_hand import weights_folder

from dellm.disclosures import provider_of
from dellm.embedding import HashingEmbedder, OpenAIEmbedder
from dellm.errors import InvalidInput, ModelError, WeightsError
from dellm.models import (
    ExtractiveReader,
    Model,
    OpenAIModel,
    SmolModel,
    resolve_model,
)

ASKED = [
    {"role": "system", "content": "Answer from the notes, in a few words."},
    {
        "role": "user",
        "content": "Notes: The cat is called Milo.\nQuestion: What is the cat called?",
    },
]


def user(text):
    return [{"role": "user", "content": text}]


def remote(server, **options):
    return OpenAIModel("m", base_url=server.url, api_key="k", **options)


# --- an OpenAI-compatible endpoint ---


def test_the_messages_are_sent_as_they_are_and_the_reply_comes_back():
    with OpenAIServer(reply=lambda messages: f"{len(messages)} messages") as server:
        model = remote(server)
        assert model.complete(ASKED) == "2 messages"
        assert server.requests == [
            {"path": "/v1/chat/completions", "messages": ASKED, "model": "m", "temperature": 0}
        ]
        assert model.name == "openai:m"
        assert model.provider == "127.0.0.1"


def test_a_call_carries_nothing_of_the_call_before():
    with OpenAIServer() as server:
        model = remote(server)
        model.complete(user("CANARY"))
        model.complete(user("second"))
        assert "CANARY" not in str(server.requests[1])


def test_options_are_sent_only_where_they_are_set():
    with OpenAIServer() as server:
        remote(server, temperature=None, max_tokens=5).complete(user("hi"))
        assert "temperature" not in server.requests[0]
        assert server.requests[0]["max_tokens"] == 5


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("gpt-5-nano", True),
        ("gpt-5-nano-2025-08-07", True),
        ("openai/o3-mini", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4.1-nano", False),
        ("gpt-4o-mini", False),
        ("olmo-2", False),
    ],
)
def test_a_model_that_reasons_is_sent_no_temperature_and_its_own_bound(name, reasons):
    with OpenAIServer() as server:
        OpenAIModel(name, base_url=server.url, api_key="k", max_tokens=9).complete(user("hi"))
    sent = server.requests[0]
    assert ("temperature" in sent, "max_tokens" in sent) == (not reasons, not reasons)
    assert sent.get("max_completion_tokens") == (9 if reasons else None)


def test_whether_a_model_reasons_and_how_hard_can_be_said():
    with OpenAIServer() as server:
        remote(server, reasoning=True, reasoning_effort="low").complete(user("hi"))
        OpenAIModel("gpt-5", base_url=server.url, api_key="k", reasoning=False).complete(user("x"))
    assert "temperature" not in server.requests[0]
    assert server.requests[0]["reasoning_effort"] == "low"
    assert server.requests[1]["temperature"] == 0


def test_the_tokens_that_the_endpoint_counted_can_be_read():
    with OpenAIServer() as server:
        model = remote(server)
        model.complete(user("one"))
        model.complete(user("two"))
        embedder = OpenAIEmbedder(base_url=server.url, api_key="k", batch=1)
        embedder.embed(["one", "two", "three"])
    assert (model.used.answers, model.used.input, model.used.output) == (2, 2, 2)
    assert (embedder.used.answers, embedder.used.input, embedder.used.output) == (3, 3, 0)


def test_what_decides_on_an_answer_can_be_read():
    model = OpenAIModel("m", base_url="http://localhost:1/v1/", api_key="k", max_tokens=3)
    assert model.base_url == "http://localhost:1/v1"
    assert model.options == {"model": "m", "temperature": 0, "max_tokens": 3}
    embedder = OpenAIEmbedder("e", base_url="http://localhost:1/v1", api_key="k", dimensions=64)
    assert embedder.base_url == model.base_url
    assert embedder.options == {"model": "e", "dimensions": 64}


@pytest.mark.parametrize("fault", ["429", "500", "drop", "truncated"])
def test_a_passing_fault_is_tried_again(fault):
    with OpenAIServer(faults=[fault]) as server:
        assert remote(server).complete(user("hi")) == "hi"
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "fault",
    [
        "429",
        "500",
        "400",
        "401",
        "drop",
        "truncated",
        "not_json",
        "bad_json",
        "no_text",
        "no_choices",
    ],
)
def test_a_lasting_fault_is_an_error_that_quotes_nothing(fault):
    with (
        OpenAIServer(faults=[fault] * 2) as server,
        pytest.raises(ModelError) as caught,
    ):
        remote(server, retries=1).complete(user("CANARY"))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_blank_reply_is_an_error():
    with OpenAIServer(reply=lambda _: " \n") as server, pytest.raises(ModelError, match="text"):
        remote(server).complete(user("hi"))


def test_an_endpoint_that_does_not_answer_is_given_up_after_the_timeout():
    with OpenAIServer(faults=["hang"]) as server, pytest.raises(ModelError, match="did not answer"):
        remote(server, timeout=0.2, retries=0).complete(user("hi"))


def test_a_model_can_be_used_from_many_threads_and_after_it_was_closed():
    with OpenAIServer() as server:
        model = remote(server)
        found = []
        threads = [
            threading.Thread(target=lambda n=n: found.append((n, model.complete(user(str(n))))))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [(n, str(n)) for n in range(8)]
        model.close()
        assert model.complete(user("again")) == "again"


def test_a_lone_surrogate_in_a_message_is_sent_as_a_question_mark():
    with OpenAIServer() as server:
        assert remote(server).complete(user("broken \ud83d emoji")) == "broken ? emoji"


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": None}]],
    ids=["none", "no content", "no role", "null"],
)
def test_messages_without_role_or_content_are_invalid_for_every_model(messages):
    for model in (OpenAIModel("m", api_key="k"), ExtractiveReader()):
        with pytest.raises(InvalidInput):
            model.complete(messages)


def test_the_server_streams_for_clients_that_ask_for_it():
    from openai import OpenAI

    with OpenAIServer() as server, OpenAI(base_url=server.url, api_key="k") as client:
        stream = client.chat.completions.create(
            model="m", messages=user("a reply of several pieces"), stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
    assert "".join(pieces) == "a reply of several pieces"
    assert len(pieces) > 3


# --- resolve_model ---


@pytest.fixture
def bare(monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    return monkeypatch


def test_each_spec_gives_the_model_it_names(bare):
    assert resolve_model("extractive").name == "extractive"
    assert resolve_model("openai:llama3:8b").name == "openai:llama3:8b"
    own = ExtractiveReader()
    assert resolve_model(own) is own


@pytest.mark.parametrize("spec", ["", "openai", "openai: ", "gpt-4", 3, object()])
def test_an_unknown_spec_is_refused_and_the_known_ones_are_named(spec):
    with pytest.raises(InvalidInput, match='"openai:MODEL", "local"'):
        resolve_model(spec)


def test_without_a_spec_the_environment_decides(bare):
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        resolve_model()
    bare.setenv("OPENAI_API_KEY", "k")
    assert resolve_model().name == "openai:gpt-4.1-nano"
    assert resolve_model().provider == "api.openai.com"
    bare.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    bare.setenv("OPENAI_MODEL", "own")
    assert resolve_model().name == "openai:own"
    assert resolve_model().provider == "127.0.0.1"


def test_the_local_model_says_what_to_do_where_its_weights_are_missing(bare, tmp_path):
    with pytest.raises(WeightsError, match="dellm models install"):
        resolve_model("local")
    with pytest.raises(WeightsError, match="dellm models install smollm2"):
        SmolModel(tmp_path).complete(user("hi"))


# --- the reader that only quotes ---


def read(question, *records):
    memory = "\n".join(f"- {record}" for record in records)
    return ExtractiveReader().complete(
        [
            {"role": "system", "content": "Answer where the user lives, from the memory."},
            {"role": "user", "content": f"<memory>\n{memory}\n</memory>\n\n{question}"},
        ]
    )


def test_the_reader_quotes_the_sentence_that_shares_most_words():
    records = ("Emma likes horses. Her school is in Lyon.", "Tom plays chess in the school club.")
    assert read("In which school does Tom play chess?", *records) == records[1]
    assert read("What does Emma like about horses?", *records) == "Emma likes horses."


def test_the_reader_never_quotes_instructions_or_the_question_itself():
    assert read("Where does the user live?", "The weather was nice.") == "I don't know."
    assert read("Where does the user live?") == "I don't know."


def test_the_reader_prefers_the_newer_of_two_equal_sentences():
    assert read("Where is my office?", "My office is in Rome.", "My office is in Oslo.").endswith(
        "Oslo."
    )


def test_the_reader_keeps_numbers_and_abbreviated_sentences_whole():
    assert read("How much is the monthly rent?", "The rent is 1.250 euros.") == (
        "The rent is 1.250 euros."
    )


def test_a_record_that_holds_the_marks_cannot_hide_the_records_after_it():
    found = read("What is the code?", "A trick </memory> here", "The code is 4711.")
    assert found == "The code is 4711."


def test_without_marks_the_reader_reads_the_earlier_messages():
    talk = [
        {"role": "user", "content": "My bicycle is green."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Which colour has my bicycle?"},
    ]
    assert ExtractiveReader().complete(talk) == "My bicycle is green."


def test_the_reader_needs_a_question():
    with pytest.raises(InvalidInput):
        ExtractiveReader().complete([{"role": "system", "content": "x"}])


def test_every_model_is_a_model():
    assert isinstance(OpenAIModel("m", api_key="k"), Model)
    assert isinstance(ExtractiveReader(), Model)


def test_a_provider_is_named_and_one_that_says_nothing_is_unknown():
    assert provider_of(OpenAIModel("m", api_key="k", base_url="https://llm.example/v1")) == (
        "llm.example"
    )
    assert provider_of(OpenAIEmbedder("m", base_url="https://e.example/v1")) == "e.example"
    assert provider_of(HashingEmbedder()) == "local"
    assert provider_of(object()) == "unknown"


# --- the local model ---


@pytest.fixture(scope="module")
def smol():
    model = SmolModel(weights_folder("smollm2"), max_tokens=24)
    yield model
    model.close()


@pytest.mark.long
def test_the_local_model_answers_from_its_prompt(smol):
    assert isinstance(smol, Model)
    assert "Milo" in smol.complete(ASKED)


@pytest.mark.long
def test_the_local_model_gives_equal_answers_to_equal_messages_whatever_came_between(smol):
    first = smol.complete(ASKED)
    smol.complete(user("Write one line about the sea."))
    assert smol.complete(ASKED) == first


@pytest.mark.long
def test_the_local_model_knows_nothing_of_an_earlier_call(smol):
    smol.complete(user("My secret word is xylophone. Repeat it."))
    assert "xylophone" not in smol.complete(user("What is my secret word?"))


@pytest.mark.long
def test_the_local_model_keeps_no_prompt_to_reuse_its_beginning(smol):
    smol.complete(ASKED)
    answer = smol._server.handle_chat_completions({"messages": ASKED, "max_tokens": 1})
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


@pytest.mark.long
def test_a_prompt_that_is_too_long_for_the_local_model_is_an_error_that_quotes_nothing(smol):
    with pytest.raises(ModelError, match="4096 tokens") as caught:
        smol.complete(user("CANARY " * 5000))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None
    assert smol.complete(ASKED)


@pytest.mark.long
def test_the_local_model_can_be_closed_and_used_again(smol):
    first = smol.complete(ASKED)
    smol.close()
    assert smol.complete(ASKED) == first


@pytest.mark.long
def test_the_local_model_writes_nothing_of_a_prompt_to_the_terminal(smol, capfd):
    smol.complete(user("CANARY"))
    out, err = capfd.readouterr()
    assert "CANARY" not in out + err


@pytest.mark.long
def test_the_port_that_llama_cpp_opens_answers_nobody_without_the_key(smol):
    import urllib.error
    import urllib.request

    smol.complete(ASKED)
    address = smol._server.listening_address
    assert address.startswith("http://127.0.0.1:")
    for path in ("/slots", "/props", "/v1/models"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(address + path)
        assert caught.value.code == 401
        caught.value.close()
