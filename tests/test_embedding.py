"""Embedders: the contract they share, the wire, the local model."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import numpy as np
import pytest
from openai_server import OpenAIServer, words_as_vector
from weights_at_hand import weights_folder

from dellm import embedding
from dellm.embedding import HashingEmbedder, MiniLMEmbedder, OpenAIEmbedder, resolve
from dellm.embedding.bert import erf, gelu, softmax
from dellm.embedding.remote import BATCH_BYTES
from dellm.errors import EmbedderError, InvalidInput, WeightsError

FACTS = (
    "I live in Paris, near the Bastille.",
    "My daughter Emma turned seven in March.",
    "I am allergic to peanuts and shellfish.",
    "We adopted a golden retriever named Biscuit.",
    "I work as a nurse in the children's ward.",
    "My car is a blue Toyota that needs new brakes.",
    "I play the cello in an amateur orchestra.",
    "Our wedding anniversary is on the third of June.",
    "I broke my left wrist while skiing.",
    "My favourite dish is mushroom risotto.",
    "I am learning Portuguese for a trip to Lisbon.",
    "My brother Tom moved to Canada last year.",
    "I take medication for high blood pressure.",
    "Our flight to Tokyo leaves on Friday at nine.",
    "I studied chemistry at the university of Leeds.",
    "I run ten kilometres every Sunday morning.",
    "My bank account was overdrawn in October.",
    "I voted in the local election for the first time.",
    "The password of the office wifi is on the fridge.",
    "I am reading a novel about the French Revolution.",
    "My grandmother taught me how to knit.",
    "I quit smoking two years ago.",
    "We are painting the kitchen yellow.",
    "My boss asked me to present the budget on Monday.",
    "I am afraid of flying.",
    "My phone screen cracked when I dropped it.",
    "I grow tomatoes and basil on the balcony.",
    "I have a dentist appointment next Tuesday.",
    "I support the football club of Liverpool.",
    "My sister is expecting twins in the autumn.",
)

# (question, index of the fact that answers it)
QUESTIONS = (
    ("Which city is my home?", 0),
    ("How old is my daughter?", 1),
    ("What food must I avoid because of an allergy?", 2),
    ("What is the name of my dog?", 3),
    ("What do I do for a living at the hospital?", 4),
    ("What is wrong with my car?", 5),
    ("Which musical instrument do I play?", 6),
    ("When did we get married?", 7),
    ("Which bone did I fracture on the ski slope?", 8),
    ("What do I like to eat most?", 9),
    ("Which language am I studying?", 10),
    ("Where does my brother live now?", 11),
    ("Do I take any pills for hypertension?", 12),
    ("When is our plane to Japan?", 13),
    ("What was my subject at university?", 14),
    ("How far do I jog at the weekend?", 15),
    ("Which book am I reading?", 19),
    ("What colour will the kitchen be?", 22),
    ("Which vegetables do I grow?", 26),
    ("Is my sister pregnant?", 29),
)


@pytest.fixture(scope="module")
def minilm():
    return MiniLMEmbedder(weights_folder("minilm"))


@pytest.fixture(params=["hashing", "openai", pytest.param("minilm", marks=pytest.mark.long)])
def embedder(request):
    if request.param == "hashing":
        yield HashingEmbedder(64)
    elif request.param == "minilm":
        yield request.getfixturevalue("minilm")
    else:
        with OpenAIServer() as server:
            remote = OpenAIEmbedder("m", base_url=server.url, api_key="k")
            yield remote
            remote.close()


def remote(server, **options):
    return OpenAIEmbedder("m", base_url=server.url, api_key="k", **options)


def units(rows):
    lengths = np.linalg.norm(rows, axis=1)
    return np.allclose(lengths, 1, atol=1e-6)


# --- the contract ---


def test_every_embedder_gives_one_float32_unit_row_per_text_in_order(embedder):
    texts = ["The cat sat on the mat.", "Quarterly revenue grew.", "naïve 東京 😀", "x"]
    rows = embedder.embed(texts)
    assert rows.dtype == np.float32
    assert rows.shape == (4, embedder.dimensions)
    assert units(rows)
    for place, text in enumerate(texts):
        np.testing.assert_allclose(embedder.embed([text])[0], rows[place], atol=1e-5)


def test_a_text_with_nothing_in_it_is_a_row_of_zeros_and_its_neighbours_are_not(embedder):
    rows = embedder.embed(["", "word", " \n\t "])
    assert not rows[0].any()
    assert not rows[2].any()
    assert units(rows[1:2])


def test_no_text_gives_no_row(embedder):
    assert len(embedder.embed([])) == 0


def test_a_lone_surrogate_is_embedded_and_not_an_error(embedder):
    assert units(embedder.embed(["broken \ud83d emoji"]))


def test_one_bare_string_is_refused_since_it_would_be_embedded_letter_by_letter(embedder):
    with pytest.raises(InvalidInput):
        embedder.embed("Paris")


def test_texts_that_are_no_strings_are_counted_in_the_error_and_not_quoted(embedder):
    with pytest.raises(InvalidInput, match="2 of the texts") as caught:
        embedder.embed(["Paris", b"secret", 7])
    assert "secret" not in str(caught.value)


def test_every_embedder_gives_the_same_rows_from_many_threads(embedder):
    texts = [f"the note number {n} about trains" for n in range(12)]
    expected = embedder.embed(texts)
    found = [None] * 4

    def work(number):
        found[number] = embedder.embed(texts)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows in found:
        np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_every_embedder_is_an_embedder_with_a_threshold_that_is_a_cosine(embedder):
    assert isinstance(embedder, embedding.Embedder)
    assert -1 <= embedder.threshold <= 1
    assert resolve(embedder) is embedder


# --- an embedder of the user's own ---


class OwnEmbedder:
    name, dimensions, threshold = "own:1", 3, 0.5

    def __init__(self, answer):
        self.answer = answer

    def embed(self, texts):
        return self.answer(texts)


def test_vectors_of_a_users_embedder_are_brought_to_unit_length():
    rows = embedding.embed(OwnEmbedder(lambda texts: [[3, 0, 4]] * len(texts)), ["a", "b"])
    np.testing.assert_allclose(rows, [[0.6, 0, 0.8]] * 2, atol=1e-7)
    assert rows.dtype == np.float32


def test_very_large_and_very_small_vectors_keep_their_direction():
    rows = embedding.embed(OwnEmbedder(lambda _: [[3e30, 0, 4e30], [3e-30, 0, 4e-30]]), ["a", "b"])
    np.testing.assert_allclose(rows, [[0.6, 0, 0.8]] * 2, atol=1e-6)


@pytest.mark.parametrize(
    "answer",
    [
        [[1, 2, 3]],
        [[1, 2, 3, 4]] * 2,
        [1, 2, 3],
        [[1, 2, 3], [1, 2]],
        [[1, 2, float("nan")]] * 2,
        [[1, 2, float("inf")]] * 2,
        [[1, 2, 1e300]] * 2,
        [["a", "b", "c"]] * 2,
        None,
    ],
    ids=["few", "long", "flat", "ragged", "nan", "inf", "overflow", "words", "nothing"],
)
def test_an_embedder_that_breaks_its_contract_is_an_error(answer):
    with pytest.raises(EmbedderError):
        embedding.embed(OwnEmbedder(lambda _: answer), ["one", "two"])


def test_what_a_users_embedder_raises_is_named_by_its_kind_and_never_quoted_or_chained():
    def fail(texts):
        raise KeyError(texts[0])

    with pytest.raises(EmbedderError, match="KeyError") as caught:
        embedding.embed(OwnEmbedder(fail), ["CANARY"])
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_embedding_nothing_does_not_call_the_embedder():
    def fail(_):
        raise AssertionError

    assert embedding.embed(OwnEmbedder(fail), []).shape == (0, 3)


# --- resolve ---


def test_resolve_gives_what_each_spec_names(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert resolve(None) is None
    assert resolve("hashing").name == "hashing:512"
    assert resolve("openai:text-embedding-3-small").name == "openai:text-embedding-3-small"
    assert resolve("openai:nomic-embed-text:v1.5").name == "openai:nomic-embed-text:v1.5"


@pytest.mark.parametrize(
    "spec", ["", "openai", "openai:", "minilm", "Local", "local ", 3, object()]
)
def test_resolve_refuses_what_it_does_not_know_and_says_what_it_accepts(spec):
    with pytest.raises(InvalidInput, match='"local", "openai:MODEL"'):
        resolve(spec)


def test_auto_is_none_and_local_is_an_error_where_no_weights_are(monkeypatch, tmp_path):
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    assert resolve("auto") is None
    with pytest.raises(WeightsError, match="dellm models install"):
        resolve("local")


@pytest.mark.long
def test_auto_is_the_local_model_where_its_weights_are():
    weights_folder("minilm")
    assert resolve("auto").name == "local:all-MiniLM-L6-v2"


def test_naming_embedders_and_models_does_not_load_the_libraries_behind_them():
    code = "import sys, dellm.embedding, dellm.models; print([m for m in ('openai', 'tokenizers', 'safetensors', 'xllamacpp') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- hashing ---


def test_hashing_is_the_same_in_every_process_and_never_changes():
    code = "from dellm.embedding import HashingEmbedder as H; print(H(16).embed(['I live in Paris'])[0].tolist())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{HashingEmbedder(16).embed(['I live in Paris'])[0].tolist()}\n"}
    # Fixed numbers: stored vectors must stay comparable from release to release.
    expected = np.array([-1, -2, 0, 1, 0, -2, -1, 1, 0, 0, 1, 0, 0, -1, 1, 1], dtype=float)
    row = HashingEmbedder(16).embed(["I live in Paris"])[0]
    np.testing.assert_allclose(row, expected / np.linalg.norm(expected), atol=1e-6)


def test_hashing_finds_the_same_words_in_another_form_and_keeps_unrelated_texts_apart():
    hashing = HashingEmbedder()
    a, b, c, d = hashing.embed(
        ["I live in Paris.", "i LIVE in  Paris", "Do you live in Paris?", "Revenue grew by a tenth"]
    )
    assert a @ b > 0.8
    assert a @ c > hashing.threshold
    assert abs(a @ d) < hashing.threshold


def test_hashing_separates_by_its_threshold_texts_that_share_words_from_those_that_do_not():
    hashing = HashingEmbedder()
    facts = hashing.embed(FACTS)
    parts = hashing.embed([" ".join(fact.split()[-4:]) for fact in FACTS])
    scores = parts @ facts.T
    own = np.eye(len(FACTS), dtype=bool)
    assert (scores[own] >= hashing.threshold).all()
    assert (scores[~own] >= hashing.threshold).mean() < 0.1


@pytest.mark.parametrize("text", ["a", "?", "ab", "é", "\u200b", "1"])
def test_hashing_gives_the_shortest_text_a_unit_row(text):
    assert units(HashingEmbedder(16).embed([text]))


def test_hashing_needs_room():
    with pytest.raises(InvalidInput):
        HashingEmbedder(1)


# --- the wire ---


@pytest.mark.parametrize("floats_only", [False, True], ids=["base64", "floats"])
def test_vectors_are_read_from_base64_and_from_a_server_that_sends_floats_all_the_same(floats_only):
    with OpenAIServer(floats_only=floats_only) as server:
        rows = remote(server).embed(["red apple", "green pear"])
        assert server.requests[0]["encoding_format"] == "base64"
        assert server.requests[0]["model"] == "m"
    for row, text in zip(rows, ["red apple", "green pear"], strict=True):
        expected = words_as_vector(text, 8)
        np.testing.assert_allclose(row, expected / np.linalg.norm(expected), atol=1e-6)


def test_rows_follow_the_index_and_not_the_order_of_the_answer():
    texts = ["red apple", "green pear", "blue plum"]
    with OpenAIServer(faults=["", "shuffled"]) as server:
        client = remote(server)
        np.testing.assert_array_equal(client.embed(texts), client.embed(texts))


@pytest.mark.parametrize("fault", ["429", "500", "drop", "truncated"])
def test_a_passing_fault_is_tried_again(fault):
    with OpenAIServer(faults=[fault, fault]) as server:
        assert units(remote(server).embed(["red apple"]))
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        ("429", 3),
        ("500", 3),
        ("drop", 3),
        ("truncated", 3),
        ("400", 1),
        ("401", 1),
        ("not_json", 1),
        ("bad_json", 1),
        ("wrong_count", 1),
        ("wrong_index", 1),
        ("ragged", 1),
        ("nan", 1),
        ("zeros", 1),
        ("bad_base64", 1),
    ],
)
def test_a_lasting_fault_is_an_error_that_quotes_nothing(fault, times):
    with OpenAIServer(faults=[fault] * 3) as server:
        with pytest.raises(EmbedderError) as caught:
            remote(server, retries=2).embed(["CANARY apple", "CANARY pear"])
        assert len(server.requests) == times
    error = caught.value
    assert "CANARY" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("fault", ["ragged", "nan", "zeros", "wrong_count"])
def test_a_wrong_answer_in_floats_is_an_error_too(fault):
    with (
        OpenAIServer(faults=[fault], floats_only=True) as server,
        pytest.raises(EmbedderError),
    ):
        remote(server).embed(["red apple", "green pear"])


def test_a_server_that_does_not_answer_is_given_up_after_the_timeout():
    with OpenAIServer(faults=["hang"] * 2) as server:
        with pytest.raises(EmbedderError, match=r"did not answer within 0\.2 s, 1 retries"):
            remote(server, timeout=0.2, retries=1).embed(["red apple"])
        assert len(server.requests) == 2


def test_nobody_at_the_address_is_an_error_and_no_http_address_is_invalid():
    with OpenAIServer() as server:
        gone = server.url
    with pytest.raises(EmbedderError, match="could not be reached"):
        OpenAIEmbedder("m", base_url=gone, api_key="k", retries=0).embed(["x"])
    for address in ("localhost:8000/v1", "ftp://127.0.0.1/v1", "https:///v1"):
        with pytest.raises(InvalidInput):
            OpenAIEmbedder("m", base_url=address, api_key="k")


def test_without_a_key_the_error_names_the_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
        OpenAIEmbedder().embed(["x"])


def test_the_environment_names_endpoint_and_key_as_for_the_client_itself(monkeypatch):
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert units(OpenAIEmbedder("m").embed(["red apple"]))
        assert OpenAIEmbedder("m").provider == "127.0.0.1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert OpenAIEmbedder("m").provider == "api.openai.com"


def test_requests_are_bounded_in_count_and_in_bytes_and_hold_every_text_once():
    texts = [f"{n} " + "x" * (8000 if n < 50 else 5) for n in range(150)]
    with OpenAIServer() as server:
        rows = remote(server, batch=40).embed(texts)
        assert server.texts() == texts
        sizes = [len(request["input"]) for request in server.requests]
        bytes_ = [sum(len(text.encode()) for text in r["input"]) for r in server.requests]
        assert rows.shape == (150, 8)
        assert sizes == [31, 40, 40, 39]
        assert max(bytes_) <= BATCH_BYTES


def test_a_long_text_is_cut_to_8191_bytes_and_never_inside_a_character():
    with OpenAIServer() as server:
        remote(server).embed(["a" * 20_000, "東" * 20_000, "😀" * 20_000])
        ascii_, cjk, emoji = server.texts()
    assert ascii_ == "a" * 8191
    assert cjk == "東" * 2730
    assert emoji == "😀" * 2047


def test_blank_texts_are_not_sent():
    with OpenAIServer() as server:
        rows = remote(server).embed(["", "red", "  "])
        assert server.texts() == ["red"]
    assert [bool(row.any()) for row in rows] == [False, True, False]


def test_dimensions_are_none_until_known_and_then_hold():
    with OpenAIServer(faults=["", "longer"]) as server:
        client = remote(server)
        assert client.dimensions is None
        client.embed(["red"])
        assert client.dimensions == 8
        with pytest.raises(EmbedderError, match="9 dimensions where 8"):
            client.embed(["red"])


def test_dimensions_that_are_asked_for_are_sent_named_and_checked():
    with OpenAIServer(faults=["", "longer"]) as server:
        client = remote(server, dimensions=4)
        assert client.name == "openai:m@4"
        assert client.embed(["red"]).shape == (1, 4)
        assert server.requests[0]["dimensions"] == 4
        with pytest.raises(EmbedderError, match="5 dimensions where 4"):
            client.embed(["red"])


def test_an_embedder_can_be_used_after_it_was_closed():
    with OpenAIServer() as server:
        client = remote(server)
        before = client.embed(["red"])
        client.close()
        np.testing.assert_array_equal(client.embed(["red"]), before)


@pytest.mark.parametrize("options", [{"batch": 0}, {"dimensions": 0}, {"text_bytes": 1}])
def test_options_that_can_hold_nothing_are_refused(options):
    with pytest.raises(InvalidInput):
        OpenAIEmbedder("m", api_key="k", **options)


# --- the local model ---


def test_erf_is_right_to_a_millionth():
    x = np.concatenate([np.linspace(-6, 6, 100_001), [0.0, -0.0, 1e-9, 40.0, -40.0]])
    exact = [math.erf(value) for value in x.astype(np.float32).tolist()]
    assert np.abs(erf(x.astype(np.float32)) - exact).max() < 1e-6


def test_gelu_and_softmax_are_what_their_definitions_say():
    x = np.linspace(-5, 5, 50_000, dtype=np.float32).reshape(2, 5, -1)
    exact = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel().tolist()]
    np.testing.assert_allclose(gelu(x).ravel(), exact, atol=3e-6)
    scores = softmax(np.array([[1e4, 1e4, -1e9]], dtype=np.float32))
    np.testing.assert_allclose(scores, [[0.5, 0.5, 0]], atol=1e-7)


@pytest.mark.long
def test_minilm_gives_the_vector_that_the_published_model_gives(minilm):
    # Made with transformers' BertModel in torch, mean over the tokens, unit length. Over all texts
    # of this file the largest difference of any number was 2e-7.
    expected = [-0.0627717, 0.0549588, 0.0521648, 0.0857900, -0.0827489, -0.0745730, 0.0685547]
    np.testing.assert_allclose(minilm.embed(["hello"])[0, :7], expected, atol=1e-6)


@pytest.mark.long
def test_minilm_answers_questions_with_the_right_fact_and_its_threshold_separates(minilm):
    facts = minilm.embed(FACTS)
    scores = minilm.embed([question for question, _ in QUESTIONS]) @ facts.T
    right = np.array([fact for _, fact in QUESTIONS])
    ranks = (scores > scores[np.arange(len(right)), right][:, None]).sum(axis=1)
    related = np.zeros_like(scores, dtype=bool)
    related[np.arange(len(right)), right] = True
    assert (ranks == 0).sum() >= 18
    assert (ranks < 5).all()
    assert (scores[related] >= minilm.threshold).mean() >= 0.95
    assert (scores[~related] >= minilm.threshold).mean() <= 0.1


@pytest.mark.long
def test_minilm_puts_a_paraphrase_above_a_text_that_only_shares_words(minilm):
    a, b, c = minilm.embed(
        [
            "He passed away last night.",
            "He died yesterday evening.",
            "He passed the salt last night.",
        ]
    )
    assert a @ b > 0.6
    assert a @ b > a @ c + 0.1


@pytest.mark.long
def test_minilm_embeds_a_text_alone_as_in_any_batch(minilm):
    texts = [*FACTS, "short", "", "long words and many of them " * 60]
    together = minilm.embed(texts)
    alone = np.concatenate([minilm.embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(minilm.embed(texts[::-1])[::-1], together, atol=1e-5)


@pytest.mark.long
def test_minilm_gives_the_same_bits_for_the_same_call(minilm):
    np.testing.assert_array_equal(minilm.embed(FACTS), minilm.embed(FACTS))


@pytest.mark.long
def test_minilm_reads_256_tokens_and_no_more(minilm):
    inside = "river " * 254
    row, longer, other = minilm.embed(
        [inside, inside + "volcano " * 50, "river " * 253 + "volcano"]
    )
    np.testing.assert_allclose(row, longer, atol=1e-6)
    assert row @ other < 0.9999


@pytest.mark.long
def test_minilm_refuses_weights_that_are_not_the_pinned_ones(tmp_path):
    whole = weights_folder("minilm")
    data = bytearray((whole / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(data)
    (tmp_path / "tokenizer.json").write_bytes((whole / "tokenizer.json").read_bytes())
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        MiniLMEmbedder(tmp_path).embed(["hello"])


def test_minilm_says_so_when_its_folder_has_no_weights(tmp_path):
    with pytest.raises(WeightsError, match="missing"):
        MiniLMEmbedder(tmp_path).embed(["hello"])
