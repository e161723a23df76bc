"""One OpenAI-compatible endpoint, spoken to through the `openai` client, with errors of our own.

The client brings the connection pool, the environment variables (`OPENAI_API_KEY`,
`OPENAI_BASE_URL`, ...), retries with backoff after 408, 409, 429, 5xx and connection faults, and
`Retry-After`. What is added here: nothing that the other side said ends up in an exception, since
error bodies quote the request (invariant I7).
"""

from __future__ import annotations

import importlib.util
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from dellm.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from openai import OpenAI

    from dellm.errors import DellmError

_Answer = TypeVar("_Answer")
_REMEDY = "Check the endpoint, the key and the model's name, then try again."
_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Used:
    """What an endpoint counted: answers that told their tokens, and tokens in and out of those."""

    answers: int = 0
    input: int = 0
    output: int = 0

    def plus(self, input_: int, output: int) -> Used:
        """Return this and one answer more."""
        return Used(self.answers + 1, self.input + input_, self.output + output)


def _address(base_url: str | None) -> str | None:
    if base_url is not None:
        parts = urlsplit(base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidInput("base_url is not an http or https address.")
    return base_url


class OpenAIEndpoint:
    """A lazily connected client. `timeout` is in seconds and holds for each try.

    `fault` is the error class to raise. Raises it at once where the extra `openai` is not installed.
    """

    def __init__(
        self,
        fault: type[DellmError],
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        retries: int,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise fault(
                "This needs the package openai.",
                remedy="Install the extra: pip install 'dellm[openai]'.",
            )
        self._fault = fault
        self._base_url = _address(base_url or os.environ.get("OPENAI_BASE_URL") or None)
        self._api_key = api_key
        self._timeout = timeout
        self._retries = retries
        self._connecting = threading.Lock()
        self._counting = threading.Lock()
        self._used = Used()
        self._client: OpenAI | None = None

    @property
    def base_url(self) -> str:
        """Address that questions are sent to, without a slash at its end."""
        return (self._base_url or _OPENAI).rstrip("/")

    @property
    def host(self) -> str:
        """Host of the endpoint: who gets to see what is sent."""
        return urlsplit(self.base_url).hostname or "unknown"

    @property
    def used(self) -> Used:
        """What the endpoint says it was asked since this object was made."""
        return self._used

    def count(self, usage: object) -> None:
        """Add the tokens that an answer says it took; one that does not say it adds nothing."""
        given = getattr(usage, "prompt_tokens", None)
        made = getattr(usage, "completion_tokens", 0)
        if isinstance(given, int) and isinstance(made, int):
            with self._counting:
                self._used = self._used.plus(given, made)

    def ask(self, question: Callable[[OpenAI], _Answer]) -> _Answer:
        """Return what `question` gets from the client; raise the fault, without content, if it can't.

        `question` may raise TypeError, ValueError, AttributeError or LookupError for an answer that
        does not have the form it must have.
        """
        import openai

        try:
            return question(self._connected())
        except openai.OpenAIError as error:
            complaint = self._complaint(error)
        except (TypeError, ValueError, AttributeError, LookupError):
            complaint = f"{self.host} answered in a form that is not OpenAI's."
        # Raised out here so that the client's own error, which quotes, is not chained to it.
        raise self._fault(complaint, remedy=_REMEDY)

    def close(self) -> None:
        """Close the connections; a later question opens them again."""
        with self._connecting:
            if self._client is not None:
                self._client.close()
            self._client = None

    def _connected(self) -> OpenAI:
        from openai import OpenAI

        with self._connecting:
            if self._client is None:
                self._client = OpenAI(
                    base_url=self._base_url,
                    api_key=self._api_key,
                    timeout=self._timeout,
                    max_retries=self._retries,
                )
            return self._client

    def _complaint(self, error: Exception) -> str:
        import openai

        if isinstance(error, openai.APITimeoutError):
            return f"{self.host} did not answer within {self._timeout} s, {self._retries} retries."
        if isinstance(error, openai.APIConnectionError):
            return f"{self.host} could not be reached, or broke off, {self._retries} retries."
        if isinstance(error, openai.APIStatusError):
            return f"{self.host} answered with status {error.status_code}."
        if isinstance(error, openai.APIError):
            return f"{self.host} answered in a form that is not OpenAI's."
        return f"The client for {self.host} can't be set up; is OPENAI_API_KEY set?"
