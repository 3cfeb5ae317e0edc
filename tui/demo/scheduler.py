"""The scheduler process of a simulated server: plays its start-up, then runs the engine."""

from __future__ import annotations

import os
import random
import select
import signal
import time

from tui.demo.arguments import Options
from tui.demo.batch_lines import Batch, decode_line, prefill_line
from tui.demo.engine import Engine, Limits, Request
from tui.demo.engine import Step as Pass
from tui.demo.machine import OnGpu
from tui.demo.memory import Memory, Scripted, here
from tui.demo.process import Channel, Message, raw, record
from tui.demo.sizes import CONTEXT_MIB, GPU_BYTES, QWEN
from tui.demo.startup import Startup
from tui.demo.steps import Bar, Crash, Die, Hang, Pin, Say, Step, Wait
from tui.demo.tracebacks import written

_PIECES = 64  # in which a pool is pinned
_LATE_SECONDS = 0.2  # what a busy machine costs is caught up, up to here


class Scheduler:
    """One rank. Only rank 0 talks to the main process and prints batch lines; the others load and wait."""

    def __init__(self, options: Options, rank: int, main: int, channel: Channel | None) -> None:
        self.options = options
        self.rank = rank
        self.main = main
        self.prefix = f" TP{rank}" if options.ranks > 1 else ""
        self.channel = channel
        self.share = here()
        self.memory: Memory = self.share or Scripted(options)
        self.gpu_mib = 0
        scenario = options.scenario
        limits = Limits(
            tokens=scenario.tokens,
            slots=scenario.slots,
            running=scenario.running,
            chunk=int(str(options.flags["chunked_prefill_size"])),
            host_tokens=options.host_pools[0] // QWEN.kv_per_token,
            draft_tokens=options.draft_tokens,
            log_interval=options.log_interval,
        )
        self.engine = Engine(limits, random.Random(options.seed))
        self.began = time.monotonic()

    def run(self) -> None:
        """Load, tell the main process, serve until it is gone."""
        self._sleep(self.options.scenario.pace.workers)
        startup = Startup(self.options, self.memory)
        for step in startup.steps():
            self._play(step)
            self.gpu_mib = CONTEXT_MIB + (GPU_BYTES - startup.available >> 20)
            self._use_gpu()
        if self.channel is None:
            while True:
                signal.pause()
        self.channel.send(ready=True, seconds=time.monotonic() - self.began)
        try:
            self._serve(self.channel)
        except EOFError:
            return

    def _say(self, text: str) -> None:
        record(text, self.prefix)

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds / self.options.speed)

    def _play(self, step: Step) -> None:
        match step:
            case Say(text):
                if self.rank == 0 or not text.startswith(("max_total_num_tokens", "Using KV cache")):
                    self._say(text)
            case Wait(seconds):
                self._sleep(seconds)
            case Bar():
                self._bar(step)
            case Pin(size, seconds):
                self._pin(size, seconds)
            case Crash(frames, error):
                self._crash(written(frames, error))
            case Die(main):
                os.kill(self.main if main else os.getpid(), signal.SIGKILL)
                signal.pause()
            case Hang():
                while True:
                    signal.pause()

    def _bar(self, bar: Bar) -> None:
        """A tqdm bar, redrawn with carriage returns, as a file holds it. Rank 0 alone draws one."""
        total = len(bar.sizes)
        each = bar.seconds / total
        for done in range(total + 1):
            if done:
                self._sleep(each)
            if self.rank == 0:
                raw("\r" + _tick(bar, done, done * each / self.options.speed) + ("\n" if bar.newlines else ""))
        if self.rank == 0:
            raw("\n")

    def _pin(self, size: int, seconds: float) -> None:
        for piece in range(_PIECES):
            self.memory.pin(size * (piece + 1) // _PIECES - size * piece // _PIECES)
            self._sleep(seconds / _PIECES)

    def _use_gpu(self) -> None:
        """Tell the simulated host what this rank holds on its GPU, and how busy it is."""
        if self.share is None:
            return
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        word = visible[self.rank] if self.rank < len(visible) else ""
        running = len(self.engine.running)
        busy = 62 + 37 * running // self.engine.limits.running if running else 0
        self.share.use_gpu(OnGpu(int(word) if word.isdigit() else self.rank, self.gpu_mib, busy))

    def _crash(self, traceback: str) -> None:
        record(f"Scheduler hit an exception: {traceback}", self.prefix, urgent=True)
        os.kill(self.main, signal.SIGQUIT)
        while True:
            signal.pause()  # the main process kills the tree

    def _serve(self, channel: Channel) -> None:
        """Take requests and step the engine at its pace. Idle, it sleeps in ``select``."""
        due = time.monotonic()
        while True:
            self._use_gpu()
            wait = None if self.engine.idle else max(0.0, due - time.monotonic())
            if select.select([channel.socket], [], [], wait)[0]:
                for message in channel.receive():
                    self._take(message)
            if self.engine.idle or time.monotonic() < due:
                continue
            step = self._step()
            channel.send(out=step.out, stats=self._stats(step.prefill, step.decode))
            due = max(due, time.monotonic() - _LATE_SECONDS) + step.seconds

    def _take(self, message: Message) -> None:
        if "abort" in message:
            self.engine.abort(message["abort"])
        elif "add" in message:
            self.engine.add(Request(message["add"], message["prompt"], message["wanted"], tuple(message["blocks"])))

    def _step(self) -> Pass:
        step = self.engine.step(time.monotonic())
        if step.prefill:
            self._say(prefill_line(self.options.dialect, step.prefill))
        if step.decode:
            self._say(decode_line(self.options.dialect, step.decode))
        return step

    def _stats(self, prefill: Batch | None, decode: Batch | None) -> dict[str, object]:
        engine = self.engine
        stats: dict[str, object] = {
            "running": len(engine.running),
            "queued": len(engine.queue),
            "used": engine.used,
            "states": engine.states,
            "accept_len": engine.accepted if engine.limits.draft_tokens else 0.0,
        }
        if prefill:
            stats |= {"new_tokens": prefill.new_tokens, "cached_tokens": prefill.cached_tokens}
        if decode:
            stats["rate"] = decode.rate
        return stats


def _tick(bar: Bar, done: int, elapsed: float) -> str:
    total = len(bar.sizes)
    percent = 100 * done // total
    left = elapsed / done * (total - done) if done else 0.0
    rate = f"{done / elapsed:5.2f}it/s" if done and elapsed else "?it/s"
    clock = f"[{_clock(elapsed)}<{_clock(left) if done else '?'}, {rate}]"
    if bar.weights:
        return f"{bar.label}: {percent:3}% Completed | {done}/{total} {clock}"
    size = bar.sizes[min(done, total - 1)]
    return (
        f"{bar.label.format(size=size)} {percent:3}%|{'█' * (done * 10 // total):10}| {done}/{total} {clock}".lstrip()
    )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"
