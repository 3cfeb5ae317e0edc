"""What a simulated server answers: a table of routes, each with the releases that have it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from tui.demo import answers
from tui.demo.arguments import Options
from tui.demo.http import Answer, Asked, json_answer
from tui.demo.lines import PROCESS
from tui.demo.process import record
from tui.demo.requests import Requests, now, token_count, words

Handler = Callable[[Asked], Awaitable[Answer]]
_OPEN = ("/health", "/metrics", "/ready", "/ping")  # no key needed
_DEPRECATED = {"/get_model_info": "/model_info", "/get_server_info": "/server_info", "/get_load": "/v1/loads"}
_DEPRECATED_SINCE = {"/get_model_info": "0.5.6", "/get_server_info": "0.5.6", "/get_load": "0.5.12"}


class Routes:
    """Handlers by method and path. ``serving`` and ``draining`` follow the server's life."""

    def __init__(self, options: Options, requests: Requests) -> None:
        self.options = options
        self.requests = requests
        self.warm = False  # the warm-up is over
        self.draining = False
        self.asked_once = False  # a request came: from then on SGLang handles SIGTERM itself
        self.table: Mapping[tuple[str, str], tuple[str, str, Handler]] = {  # since, until (exclusive), handler
            ("GET", "/health"): ("0.3.6", "", self._health),
            ("GET", "/health_generate"): ("0.3.6", "", self._health_generate),
            ("GET", "/ping"): ("0.4.4", "", self._health),
            ("GET", "/ready"): ("0.5.20", "", self._ready),
            ("GET", "/get_model_info"): ("0.3.6", "", self._model_info),
            ("GET", "/model_info"): ("0.5.6", "", self._model_info),
            ("GET", "/get_server_info"): ("0.4.1", "", self._server_info),
            ("GET", "/server_info"): ("0.5.6", "", self._server_info),
            ("GET", "/get_load"): ("0.4.7", "0.5.21", self._get_load),
            ("GET", "/v1/loads"): ("0.5.8", "", self._loads),
            ("GET", "/v1/models"): ("0.3.6", "", self._models),
            ("GET", "/metrics"): ("0.3.6", "", self._metrics),
            ("POST", "/flush_cache"): ("0.3.6", "", self._flush),
            ("POST", "/freeze_gc"): ("0.5.18", "", self._flush),
            ("POST", "/generate"): ("0.3.6", "", self._generate),
            ("POST", "/v1/completions"): ("0.3.6", "", self._completions),
            ("POST", "/v1/chat/completions"): ("0.3.6", "", self._chat),
        }

    async def answer(self, asked: Asked) -> Answer:
        """The answer to any request; mistakes of the client are 4xx."""
        path = asked.path.partition("?")[0]
        key = self.options.flags.get("api_key")
        if key and not path.startswith(_OPEN) and asked.headers.get("authorization") != f"Bearer {key}":
            return json_answer({"error": "Unauthorized"}, 401)
        since = self.options.dialect.since
        first, until, handler = self.table.get((asked.method, path), ("", "", None))
        if handler is None or not since(first) or (until and since(until)):
            return json_answer({"detail": "Not Found"}, 404)
        if path in _DEPRECATED and since(_DEPRECATED_SINCE[path]):
            record(self.options.dialect.say(PROCESS, "deprecated", old=path, new=_DEPRECATED[path]) or "")
        try:
            return await handler(asked)
        except (ValueError, TypeError) as error:
            return json_answer({"object": "error", "message": str(error), "type": "BadRequest", "code": 400}, 400)

    async def _health(self, asked: Asked) -> Answer:
        """Static up to 0.4.10; since then it generates a token, as ``/health_generate`` always did."""
        return await self._health_generate(asked) if self.options.dialect.since("0.5.1") else Answer()

    async def _health_generate(self, asked: Asked) -> Answer:
        if self.draining:
            record("Health check request received during shutdown. Returning 503.")
            return Answer(503)
        if not self.warm and self.options.dialect.since("0.5.1"):
            return Answer(503)
        await asyncio.gather(self._count("x", 1), asyncio.sleep(1.0 / self.options.speed))
        return Answer()

    async def _ready(self, asked: Asked) -> Answer:
        return Answer(200 if self.warm and not self.draining else 503)

    async def _model_info(self, asked: Asked) -> Answer:
        return json_answer(answers.model_info(self.options))

    async def _server_info(self, asked: Asked) -> Answer:
        return json_answer(answers.server_info(self.options, self.requests.figures))

    async def _get_load(self, asked: Asked) -> Answer:
        return json_answer(answers.get_load(self.options, self.requests.figures))

    async def _loads(self, asked: Asked) -> Answer:
        return json_answer(answers.loads(self.options, self.requests.figures))

    async def _models(self, asked: Asked) -> Answer:
        return json_answer(answers.models(self.options, self.requests.figures))

    async def _metrics(self, asked: Asked) -> Answer:
        if not self.options.flags["enable_metrics"]:
            return json_answer({"detail": "Not Found"}, 404)
        text = answers.metrics(self.options, self.requests.figures)
        return Answer(body=text.encode(), kind="text/plain; version=0.0.4; charset=utf-8")

    async def _flush(self, asked: Asked) -> Answer:
        return Answer(body=b"Done.\n", kind="text/plain; charset=utf-8")

    async def _count(self, prompt: str, wanted: int) -> int:
        self.asked_once = True
        return sum([count async for count, _ in self.requests.generate(prompt, wanted)])

    async def _generate(self, asked: Asked) -> Answer:
        body = asked.json()
        parameters = body.get("sampling_params") or {}
        ids = body.get("input_ids")
        prompt = _text(body.get("text")) if ids is None else "".join(f"{number:4}" for number in _numbers(ids))
        wanted = _wanted(parameters.get("max_new_tokens", 128) if isinstance(parameters, dict) else 128)

        def shape(text: str, tokens: int, finished: bool) -> dict[str, object]:
            reason = {"type": "length", "length": wanted} if finished else None
            meta = {"prompt_tokens": token_count(prompt), "completion_tokens": tokens, "finish_reason": reason}
            return {"text": text, "meta_info": meta}

        return await self._reply(bool(body.get("stream")), prompt, wanted, shape, whole=True)

    async def _completions(self, asked: Asked) -> Answer:
        body = asked.json()
        given = body["prompt"] if "prompt" in body else _missing("prompt")
        prompt = _text(given[0] if isinstance(given, list) and given and isinstance(given[0], str) else given)
        wanted = _wanted(body.get("max_tokens", 16))

        def shape(text: str, tokens: int, finished: bool) -> dict[str, object]:
            choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "length" if finished else None}
            return self._openai("cmpl", "text_completion", choice, prompt, tokens, finished)

        return await self._reply(bool(body.get("stream")), prompt, wanted, shape)

    async def _chat(self, asked: Asked) -> Answer:
        body = asked.json()
        messages = body["messages"] if "messages" in body else _missing("messages")
        prompt = json.dumps(messages)
        wanted = _wanted(body.get("max_completion_tokens") or body.get("max_tokens") or 128)
        stream = bool(body.get("stream"))

        def shape(text: str, tokens: int, finished: bool) -> dict[str, object]:
            name = "delta" if stream else "message"
            choice = {
                "index": 0,
                name: {"role": "assistant", "content": text},
                "finish_reason": "length" if finished else None,
            }
            return self._openai(
                "chatcmpl", "chat.completion" + (".chunk" if stream else ""), choice, prompt, tokens, finished
            )

        return await self._reply(stream, prompt, wanted, shape)

    def _openai(
        self, prefix: str, kind: str, choice: dict[str, object], prompt: str, tokens: int, finished: bool
    ) -> dict[str, object]:
        given = token_count(prompt)
        usage = {"prompt_tokens": given, "completion_tokens": tokens, "total_tokens": given + tokens}
        return {
            "id": f"{prefix}-{self.requests.figures.requests:08x}",
            "object": kind,
            "created": now(),
            "model": self.options.flags["served_model_name"],
            "choices": [choice],
            "usage": usage if finished else None,
        }

    async def _reply(
        self,
        stream: bool,
        prompt: str,
        wanted: int,
        shape: Callable[[str, int, bool], dict[str, object]],
        *,
        whole: bool = False,
    ) -> Answer:
        """One body, or server-sent events. ``whole``: each event holds all the text so far, as ``/generate`` does."""
        self.asked_once = True
        if not stream:
            tokens = await self._count(prompt, wanted)
            return json_answer(shape(words(0, tokens), tokens, True))

        async def events() -> AsyncIterator[bytes]:
            done = 0
            async for count, finished in self.requests.generate(prompt, wanted):
                text = words(0, done + count) if whole else words(done, count)
                done += count
                yield b"data: " + json.dumps(shape(text, done, finished)).encode() + b"\n\n"
            yield b"data: [DONE]\n\n"

        return Answer(kind="text/event-stream; charset=utf-8", stream=events())


def _missing(name: str) -> Any:
    raise ValueError(f"1 validation error: {name}: Field required")


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(f"{number:4}" for number in _numbers(value))
    if not isinstance(value, str):
        raise ValueError("the prompt must be text or token ids")
    return value


def _numbers(value: object) -> list[int]:
    if not isinstance(value, list) or not all(isinstance(number, int) for number in value):
        raise ValueError("token ids must be a list of integers")
    return value


def _wanted(value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError("the number of new tokens must be at least 1")
    return value
