"""A small HTTP server on loopback that speaks OpenAI's embeddings and chat completions.

The real `openai` client talks to it over real sockets. It can be told to fail in the ways that real
endpoints fail, and takes a function that writes the chat replies:

    with OpenAIServer(reply=lambda messages: str(messages)) as server:
        OpenAIModel("canary", base_url=server.url, api_key="test").complete([...])
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    # A text, or the tool calls of a message as OpenAI writes them.
    Reply = Callable[[list[dict[str, Any]]], str | list[dict[str, Any]]]

# What the server can be told to do instead of answering well; each counts for one request.
FAULTS = {
    "429": "too many requests, try again",
    "500": "internal error, try again",
    "400": "bad request; the body quotes the request, as real ones do",
    "401": "unauthorised",
    "hang": "no answer until the server is closed",
    "drop": "the connection is closed without an answer",
    "truncated": "the body breaks off",
    "not_json": "200 with an HTML page, as proxies do",
    "bad_json": "200 with JSON that can't be parsed",
    "wrong_count": "one vector too few",
    "wrong_index": "one index twice",
    "shuffled": "vectors in another order, each with its right index",
    "ragged": "vectors of different lengths",
    "nan": "a number that is none",
    "zeros": "a vector of zeros",
    "longer": "one dimension more than usual",
    "bad_base64": "base64 that isn't",
    "no_text": "a chat reply without content",
    "no_choices": "a chat answer without a choice",
}


def words_as_vector(text: str, dimensions: int) -> NDArray[np.float32]:
    """A vector that depends on the text alone and is not of unit length."""
    row = np.zeros(dimensions, dtype=np.float32)
    for word in text.casefold().split():
        row[hashlib.sha256(word.encode()).digest()[0] % dimensions] += 3
    row[0] += 0.5
    return row


def last_message(messages: list[dict[str, Any]]) -> str:
    """The reply of the server unless another is asked for: what was said last."""
    return str(messages[-1]["content"])


class OpenAIServer:
    """Listens from the start of its `with` block to its end. `url` is the base_url for a client.

    `faults` are used up one a request, in order ("" for none); after them all is well. `floats_only` ignores the
    client's wish for base64. `requests` are the bodies received, each with its path.
    """

    def __init__(
        self,
        *,
        reply: Reply = last_message,
        dimensions: int = 8,
        faults: Iterable[str] = (),
        floats_only: bool = False,
    ) -> None:
        self.reply = reply
        self.dimensions = dimensions
        self.floats_only = floats_only
        self.requests: list[dict[str, Any]] = []
        self.closed = threading.Event()
        self._faults = deque(faults)
        self._lock = threading.Lock()
        unknown = set(self._faults) - set(FAULTS) - {""}
        assert not unknown, f"unknown faults: {unknown}"

    def __enter__(self) -> Self:
        owner = self

        class Handler(_Handler):
            server_state = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def take(self, path: str, body: dict[str, Any]) -> str:
        """Note a request, and say which fault it is to meet ("" for none)."""
        with self._lock:
            self.requests.append({"path": path, **body})
            return self._faults.popleft() if self._faults else ""

    def texts(self) -> list[str]:
        """Every text that was sent to be embedded, in order."""
        return [text for request in self.requests for text in request.get("input", [])]


class _Handler(BaseHTTPRequestHandler):
    server_state: OpenAIServer

    def log_message(self, *_: object) -> None:
        """Keep the test output clean."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        fault = self.server_state.take(self.path, body)
        if fault in {"429", "500", "400", "401"}:
            self._send({"error": {"message": f"you sent {body}"}}, status=int(fault))
        elif fault == "hang":
            self.server_state.closed.wait()
        elif fault == "drop":
            self.close_connection = True
        elif fault == "not_json":
            self._send_bytes(b"<html>hello</html>", kind="text/html")
        elif fault == "bad_json":
            self._send_bytes(json.dumps({"data": body}).encode()[:-5])
        elif self.path == "/v1/embeddings":
            self._send(self._embeddings(body, fault), cut=fault == "truncated")
        elif self.path == "/v1/chat/completions":
            self._chat(body, fault)
        else:
            self._send({"error": {"message": "no such path"}}, status=404)

    def _embeddings(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        if not all(body["input"]):
            return {"error": {"message": "'$.input' is invalid"}}
        width = body.get("dimensions", self.server_state.dimensions) + (fault == "longer")
        rows = [words_as_vector(text, width) for text in body["input"]]
        if fault == "nan":
            rows[-1][0] = np.nan
        if fault == "zeros":
            rows[-1][:] = 0
        if fault == "ragged":
            rows[-1] = rows[-1][:-1]
        floats = self.server_state.floats_only or body.get("encoding_format") != "base64"
        coded = [row.tolist() if floats else base64.b64encode(row).decode() for row in rows]
        if fault == "bad_base64":
            coded[-1] = "%%%"
        data = [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(coded)
        ]
        if fault == "wrong_count":
            data.pop()
        if fault == "wrong_index":
            data[-1]["index"] = 0
        if fault == "shuffled":
            data.reverse()
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": body["model"], "data": data, "usage": usage}

    def _chat(self, body: dict[str, Any], fault: str) -> None:
        said = None if fault == "no_text" else self.server_state.reply(body["messages"])
        calls = said if isinstance(said, list) else []
        text = None if isinstance(said, list) else said
        reason = "tool_calls" if calls else "stop"
        if body.get("stream"):
            self._stream(body["model"], text or "", calls, reason)
            return
        message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
        choices = [{"index": 0, "finish_reason": reason, "message": message}]
        answer = _chat_object(body["model"], "chat.completion")
        answer["choices"] = [] if fault == "no_choices" else choices
        answer["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self._send(answer, cut=fault == "truncated")

    def _stream(self, model: str, text: str, calls: list[dict[str, Any]], reason: str) -> None:
        pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        pieces += [{"content": text[start : start + 7]} for start in range(0, len(text), 7)]
        for index, call in enumerate(calls):
            pieces += [{"tool_calls": [{**piece, "index": index}]} for piece in _in_pieces(call)]
        lines = []
        for number, delta in enumerate([*pieces, {}]):
            chunk = _chat_object(model, "chat.completion.chunk")
            done = reason if number == len(pieces) else None
            chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": done}]
            lines.append(f"data: {json.dumps(chunk)}\n\n")
        self._send_bytes("".join([*lines, "data: [DONE]\n\n"]).encode(), kind="text/event-stream")

    def _send(self, answer: dict[str, Any], *, status: int = 200, cut: bool = False) -> None:
        status = 400 if "error" in answer and status == 200 else status
        self._send_bytes(json.dumps(answer).encode(), status=status, cut=cut)

    def _send_bytes(
        self,
        data: bytes,
        *,
        kind: str = "application/json",
        status: int = 200,
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "1")  # the client waits this long before it tries again
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)


def tool_call(name: str, id_: str, **arguments: Any) -> dict[str, Any]:
    """A tool call as OpenAI writes it in a message."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id_, "type": "function", "function": function}


def _in_pieces(call: dict[str, Any]) -> list[dict[str, Any]]:
    """A tool call as it is streamed: who is called first, then its arguments a few letters each."""
    said = call["function"]["arguments"]
    first = {**call, "function": {**call["function"], "arguments": ""}}
    rest = [said[start : start + 7] for start in range(0, len(said), 7)]
    return [first, *({"function": {"arguments": piece}} for piece in rest)]


def _chat_object(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-test", "object": kind, "created": 0, "model": model}
