"""A model of a continuous-batching engine: requests queue, are prefilled in chunks, then decode together.

Pure: it is told the time and returns what a step produced; somebody else sleeps and prints. Its speed is that of
the first users' GPU: 62 tok/s for one request, 409 for nine; with multi-token prediction 62 to 77 and 234 for four.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from tui.demo.batch_lines import Batch

_STEP_SECONDS = 0.0154  # one decode step of one request
_STEP_PER_REQUEST = 0.00073  # and for each request in the batch
_DRAFT_FACTOR = 2.22  # a step that drafts and verifies four tokens
_PREFILL_SECONDS = 0.028
_PREFILL_RATE = 7000.0  # tokens per second
_BLOCK = 64  # tokens that share one entry of the prefix cache


@dataclass(slots=True)
class Request:
    """One request; ``blocks`` are the digests of its prompt's prefixes, for the prefix cache."""

    rid: str
    prompt: int
    wanted: int
    blocks: tuple[int, ...] = ()
    cached: int = 0
    prefilled: int = 0
    part: int = 0  # tokens of the newest prefill pass
    produced: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The caches that bound an engine."""

    tokens: int
    slots: int
    running: int
    chunk: int = 8192
    host_tokens: int = 0  # of a HiCache pool: prompts that are kept beyond the device pool
    draft_tokens: int = 0
    log_interval: int = 40


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward pass did: how long it takes, new tokens per request, and the report to print, if any."""

    seconds: float
    out: tuple[tuple[str, int, bool], ...] = ()
    prefill: Batch | None = None
    decode: Batch | None = None


@dataclass
class Engine:
    """The scheduler's queue and running batch."""

    limits: Limits
    rng: random.Random
    queue: deque[Request] = field(default_factory=deque)
    running: list[Request] = field(default_factory=list)
    cache: dict[int, None] = field(default_factory=dict)
    forward: int = 0
    decodes: int = 0
    generated: int = 0  # since the last decode report
    accepted: float = 2.6  # tokens a step and request
    prefill_at: float = 0.0
    decode_at: float = 0.0

    @property
    def idle(self) -> bool:
        return not (self.queue or self.running)

    @property
    def used(self) -> int:
        """Tokens held by running requests."""
        return min(self.limits.tokens, sum(request.prompt + request.produced for request in self.running))

    @property
    def states(self) -> int:
        """Mamba states held by running requests: three each, and one more for every second one that is tracked."""
        return min(self.limits.slots, 3 * len(self.running) + len(self.running) // 2)

    def add(self, request: Request) -> None:
        self.queue.append(request)

    def abort(self, rid: str) -> None:
        self.queue = deque(request for request in self.queue if request.rid != rid)
        self.running = [request for request in self.running if request.rid != rid]

    def step(self, now: float) -> Step:
        """One forward pass: a prefill when something waits and fits, else a decode of all that run."""
        self.forward += 1
        batch = self._admit()
        return self._prefill(batch, now) if batch else self._decode(now)

    def _admit(self) -> list[Request]:
        """Requests from the queue that fit into slots, tokens and one chunk. A long prompt takes several chunks."""
        batch: list[Request] = []
        budget = self.limits.chunk
        while self.queue and budget > 0 and len(self.running) + len(batch) < self.limits.running:
            request = self.queue[0]
            held = self.used + sum(other.prompt for other in batch)
            if (self.running or batch) and held + request.prompt + request.wanted > self.limits.tokens:
                break
            if not request.prefilled:
                request.cached = self._cached(request)
                request.prefilled = request.cached
            request.part = max(1, min(request.prompt - request.prefilled, budget))
            request.prefilled += request.part
            budget -= request.part
            batch.append(request)
            if request.prefilled < request.prompt:
                break
            self.queue.popleft()
        return batch

    def _cached(self, request: Request) -> int:
        hits = 0
        for block in request.blocks:
            if block not in self.cache:
                break
            hits += 1
        for block in request.blocks:
            self.cache.pop(block, None)
            self.cache[block] = None
        while len(self.cache) * _BLOCK > self.limits.tokens + self.limits.host_tokens:
            del self.cache[next(iter(self.cache))]
        return max(0, min(hits * _BLOCK, request.prompt - 1))

    def _prefill(self, batch: list[Request], now: float) -> Step:
        done = [request for request in batch if request.prefilled >= request.prompt]
        running = len(self.running)
        new = sum(request.part for request in batch)
        first = [request for request in batch if request.prefilled == request.cached + request.part]
        self.running += done
        seconds = _PREFILL_SECONDS + new / _PREFILL_RATE
        elapsed = max(seconds, now - self.prefill_at) if self.prefill_at else seconds
        self.prefill_at = now
        report = Batch(
            forward=self.forward,
            running=running,
            queued=len(self.queue),
            tokens=self.used,
            kv=self.used / self.limits.tokens,
            states=self.states,
            mamba=self.states / self.limits.slots,
            rate=new / elapsed,
            new_requests=len(batch),
            new_tokens=new,
            cached_tokens=sum(request.cached for request in first),
            pending=sum(request.prompt - request.prefilled for request in self.queue),
        )
        return Step(seconds, tuple(self._produce(request, 1) for request in done), prefill=report)

    def _produce(self, request: Request, count: int) -> tuple[str, int, bool]:
        count = min(count, request.wanted - request.produced)
        request.produced += count
        self.generated += count
        ended = request.produced >= request.wanted
        if ended:
            self.running.remove(request)
        return request.rid, count, ended

    def _decode(self, now: float) -> Step:
        if not self.running:
            return Step(0.001)
        seconds = _STEP_SECONDS + _STEP_PER_REQUEST * len(self.running)
        if self.limits.draft_tokens:
            seconds *= _DRAFT_FACTOR
            self.accepted += (2.6 - self.accepted) * 0.05 + self.rng.uniform(-0.06, 0.06)
        self.decodes += 1
        count = len(self.running)
        out = tuple(self._produce(request, self._tokens()) for request in list(self.running))
        report = self._report(count, now) if self.decodes % self.limits.log_interval == 0 else None
        return Step(seconds * self.rng.uniform(0.97, 1.03), out, decode=report)

    def _tokens(self) -> int:
        """Tokens of one request in one step: one, or as many drafts as are accepted."""
        if not self.limits.draft_tokens:
            return 1
        mean = min(max(self.accepted, 1.0), self.limits.draft_tokens)
        return int(mean) + (self.rng.random() < mean - int(mean))

    def _report(self, count: int, now: float) -> Batch:
        elapsed = max(1e-6, now - self.decode_at)
        rate, self.generated, self.decode_at = self.generated / elapsed, 0, now
        drafts = self.limits.draft_tokens
        return Batch(
            forward=self.forward,
            running=count,
            queued=len(self.queue),
            tokens=self.used,
            kv=self.used / self.limits.tokens,
            states=self.states,
            mamba=self.states / self.limits.slots,
            rate=rate,
            accept_len=self.accepted if drafts else 0.0,
            accept_rate=(self.accepted - 1) / (drafts - 1) if drafts > 1 else 0.0,
            accept_share=self.accepted / drafts if drafts else 0.0,
        )
