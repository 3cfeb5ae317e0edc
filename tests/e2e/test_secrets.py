"""Canaries in every place where a secret may stand, looked for in everything that leaves the raw log."""

# small files of the test
from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.host.sshd import Sshd
from tests.host.test_keys import command_lines
from tests.ports import free_port
from tests.view.test_app import until
from tui.fleet.thread import FleetThread
from tui.profile.load import load
from tui.view.app import HcsApp
from tui.view.log.pane import LogPane
from tui.view.snapshot import screen_text, take

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "KEY": "canary-api-5b1c9e",
    "ADMIN": "canary.admin/77f0",
    "HF_TOKEN": "hf_CanaryCanaryCanary0042",
    "WORD": "canaryword90210",  # nothing tells that this is a secret, but that the profile says so
    "PROXY": "http://canaryuser:canarypass11@proxy.example:3128",
    "EXTRA": '{"tenant": "canary-extra-33"}',
}
PLAIN = "canary-plain-8d2a"
CANARIES = [*ENVIRONMENT.values(), PLAIN, "canarypass11", "canary-extra-33", "canary-odd-4c", "canary-end-9d"]

# what servers and their libraries have been seen to print
LOG = r"""
import json, os, shlex, sys, time
argv = sys.argv[1:]
if "--config" in argv:
    from ruamel.yaml import YAML
    argv += [w for pair in YAML(typ="safe").load(open(argv[argv.index("--config") + 1])).items() for w in pair]
key, admin, extra = (argv[next(i for i, w in enumerate(argv) if w.strip("-") == name) + 1]
                     for name in ("api-key", "admin-api-key", "hicache-storage-backend-extra-config"))
env, at = dict(os.environ), "[2026-01-01 10:00:00] "
odd = "it's \"canary-odd-4c\", canary-end-9d"  # known to no profile, and told by its name alone
for line in (
    "%sserver_args=ServerArgs(model_path='/m', api_key='%s', admin_api_key='%s', port=1)" % (at, key, admin),
    "%sserver_args=ServerArgs(model_path=\"/m\", api_key=\"%s\", tp_size=1)" % (at, key),
    at + "server_args=" + json.dumps({"api_key": key, "hicache_storage_backend_extra_config": extra}),
    at + "server_args=ServerArgs(model_path='/m', api_key=%r, admin_api_key=%r, port=1)" % (odd[5:], odd),
    at + json.dumps({"api_key": odd, "port": 1}),
    at + "command: " + shlex.join(["python", "--api-key", odd, "--admin-api-key=" + odd]),
    at + "export HF_TOKEN=" + shlex.quote(odd),
    at + "argv: " + repr(["--api-key", odd, "--admin-api-key=" + odd]),
    "  api_key: " + odd,
    at + "argv: " + repr(argv),
    at + "command: python -m sglang.launch_server " + " ".join(argv),
    at + "headers: {'Authorization': 'Bearer %s', 'x-api-key': '%s'}" % (key, key),
    at + "Authorization: Bearer " + key,
    at + "Authorization: Basic " + __import__("base64").b64encode(b"canaryuser:canarypass11").decode(),
    at + "using proxy " + env["http_proxy"],
    at + "downloading with token " + env["HF_TOKEN"],
    at + "the word is " + env["TELEMETRY"],
    at + "\x1b[31mthe word is %s\x1b[0m, colored key \x1b[1m%s\x1b[0m" % (env["TELEMETRY"], key),
    at + "Load weight begin. avail mem=70.00 GB",
    at + "WARNING: key %s is short" % key,
    at + "Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/x/scheduler.py", line 1, in run',
    "    os.execvpe(argv, {%s})" % ", ".join("%r: %r" % pair for pair in env.items()),
    "ValueError: bad environment TELEMETRY=%s HF_TOKEN=%s api_key=%s admin_api_key=%r url %s" % (
        env["TELEMETRY"], env["HF_TOKEN"], key, odd, env["http_proxy"]),
): print(line, flush=True)
print("last words: the key was", key, "and the word", env["TELEMETRY"], flush=True)
time.sleep(0 if "--die" in argv else 600)
sys.exit(1)
"""


@dataclass(frozen=True)
class Site:
    """A profile with canaries, and the program pointed at it."""

    folder: Path
    profile: Path

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, **ENVIRONMENT, "HCS_HOME": str(self.folder / "side"), "HCS_DEBUG": "1",
                "PYTHONPATH": str(ROOT)}  # fmt: skip

    def run(self, *words: str) -> str:
        """Everything that a command says."""
        done = subprocess.run(
            [sys.executable, "-m", "tui", *words], capture_output=True, text=True, errors="replace", timeout=90,
            env=self.env, cwd=self.folder,
        )  # fmt: skip
        return done.stdout + done.stderr


@pytest.fixture
def site(sshd: Sshd, tmp_path: Path) -> Iterator[Site]:
    env = tmp_path / "env"
    (env / "bin").mkdir(parents=True)
    (env / "pyvenv.cfg").touch()
    (env / "lib/python3.11/site-packages/sglang-0.5.23.dist-info").mkdir(parents=True)
    (env / "server.py").write_text(LOG)
    python = env / "bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {env}/server.py "$@"\n')
    python.chmod(0o755)
    profile = tmp_path / "fleet.yaml"
    profile.write_text(f"""
name: fleet
hosts:
  box: {{ssh: '{sshd.address}', identity: {sshd.identity}, known_hosts: {sshd.known_hosts},
         state_dir: {tmp_path}/state}}
defaults:
  host: box
  python: {python}
  cwd: {tmp_path}
  ready_timeout: 5s
  env: {{HF_TOKEN: !secret HF_TOKEN, TELEMETRY: !secret WORD, http_proxy: !secret PROXY}}
  args: {{model-path: /m, api-key: !secret KEY, hicache-storage-backend-extra-config: !secret EXTRA}}
servers:
  lives: {{port: {free_port()}, args: {{admin-api-key: !secret ADMIN}}}}
  dies: {{port: {free_port()}, args: {{admin-api-key: {PLAIN}, die: true}}}}
""")
    profile.chmod(0o600)
    found = Site(tmp_path, profile)
    yield found
    found.run("down", str(profile), "--grace", "0")


def leaks(where: str, text: str | bytes) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    bare = re.sub(rb"<[^>]*>|&#\w+;|\s", b"", data)  # as it would be read from an SVG, or across wrapped lines
    found = [canary for canary in CANARIES for seen in (data, bare) if canary.encode() in seen]
    lines = [line[:300] for line in data.splitlines() for canary in found if canary.encode() in line]
    return [f"{where}: {canary} in {lines[:2]}" for canary in sorted(set(found))]


def test_no_command_shows_a_secret(site: Site) -> None:
    profile = str(site.profile)
    found: list[str] = []
    for words in (
        ["check", profile], ["check", profile, "--json"], ["check", profile, "--offline"],
        ["up", profile, "--dry-run"], ["up", profile, "--dry-run", "--json"],
        ["up", profile, "--timeout", "6", "--json"], ["up", profile, "--timeout", "2"],
    ):  # fmt: skip
        said = site.run(*words)
        assert said, words
        found += leaks(" ".join(words), said)
    assert "lives" in site.run("status", profile)
    found += leaks("command lines", command_lines())
    folder = site.folder
    commands = [
        ["status", profile], ["status", profile, "--json"], ["runs", profile], ["runs", profile, "--json"],
        ["runs", "compare", f"{profile}:lives", f"{profile}:dies"],
        ["runs", "compare", f"{profile}:lives", f"{profile}:dies", "--json"],
        ["logs", profile, "lives"], ["logs", profile, "dies"], ["discover", "local"], ["discover", "local", "--json"],
        *(["snapshot", profile, "--out", f"{folder}/{view}.{form}", "--view", view, "--until", "1"]
          for view, form in (("board", "svg"), ("board", "txt"), ("wall", "svg"), ("wall", "txt"), ("board", "json"),
                             ("merged", "svg"), ("merged", "txt"))),
        ["relaunch", profile, "dies", "--timeout", "5"],
    ]  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        for words, said in zip(commands, pool.map(lambda words: site.run(*words), commands), strict=True):
            found += leaks(" ".join(words), said)
    pictures = [path for view in ("board", "wall", "merged") for path in folder.glob(f"{view}.*")]
    assert {path.suffix for path in pictures} == {".svg", ".txt", ".json"} and len(pictures) == 7
    for path in pictures:
        found += leaks(path.name, path.read_bytes())
    assert not found, "\n".join(found)
    _files(site)


def _files(site: Site) -> None:
    """On the host only the raw log and the 0600 file of flags hold secrets, here only the spool; nobody else can read
    any of it."""
    raw = {"server.log", "flags.yaml"}
    for path in sorted((site.folder / "state").rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path.is_dir():
            assert mode == 0o700, path
        elif not path.is_symlink():
            assert mode == 0o600, path
            assert path.name in raw or not leaks(str(path), path.read_bytes()), path
    spooled = [path for path in (site.folder / "side").rglob("*") if path.is_file()]
    assert any("spool" in path.parts and leaks("", path.read_bytes()) for path in spooled)  # the canaries were there
    for path in spooled:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert "spool" in path.parts or not leaks(str(path), path.read_bytes()), path
    for path in (site.folder / "side").rglob("*"):
        assert not path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o700, path


async def test_no_screen_shows_a_secret(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ENVIRONMENT, "HCS_HOME": str(site.folder / "side")}.items():
        monkeypatch.setenv(name, value)
    site.run("up", str(site.profile), "--timeout", "5")
    source = FleetThread(load(site.profile))
    source.start()
    found: list[str] = []
    try:
        app = HcsApp(source)
        app.animation_level = "none"
        async with app.run_test(size=(200, 50), notifications=True) as pilot:
            await until(source.settled, pilot)
            app.select("lives")
            await until(lambda: "last words" in screen_text(app), pilot)
            found += leaks("board", screen_text(app))
            for keys in (["z"], ["z", "W"], ["w"], ["m"], ["m", "w"], ["w", "c"], ["escape", "K"],
                         ["escape", "question_mark"], ["escape", "slash", *"canary", "enter"], ["n"], ["Y"],
                         ["d"]):  # fmt: skip
                await pilot.press(*keys)
                await pilot.pause(0.3)
                found += leaks("+".join(keys), screen_text(app))
                found += leaks("svg after " + "+".join(keys), app.export_screenshot())
            app.select("dies")
            await pilot.pause(0.3)
            found += leaks("dies", screen_text(app))
            pane = app.query_one(LogPane)
            found += leaks("copied", json.dumps([app.clipboard, str(pane)]))
        shot = await take(source, size=(160, 50), selected="lives", keys=["W"])
        found += leaks("snapshot", shot.svg + shot.text)
    finally:
        source.stop()
    assert not found, "\n".join(found)
