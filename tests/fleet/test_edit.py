"""Flags as lines: read back as they were; what changed, what is wrong."""

from __future__ import annotations

import pytest

from tui.fleet.edit import Change, edit, flag_texts, lines_of
from tui.profile.load import loads
from tui.profile.model import Secret, Server

PROFILE = """
hosts: {here: {ssh: local}}
defaults: {host: here}
servers:
  a:
    port: 30000
    args:
      model-path: Qwen/Qwen3.6-27B
      enable-hierarchical-cache: true
      hicache-size: 150
      mem-fraction-static: 0.8
      served-model-name: "27"
      lora-paths: [a, "b c"]
      api-key: !secret KEY
      admin-api-key: plain-text-key
      chat-template: "{# a: b #}"
  own: {port: 30001, command: [/opt/server, --model-path, /m, --hicache-size, "8"]}
"""


def server(name: str = "a") -> Server:
    return loads(PROFILE).server(name)


def test_unchanged_lines_change_nothing() -> None:
    for name in ("a", "own"):
        before = flag_texts(server(name))
        told = edit(before, lines_of(before))
        assert told.changes == () and told.overrides == {} and told.errors == () and told.warnings == ()


def test_secrets_are_not_shown() -> None:
    texts = flag_texts(server())
    assert texts["api-key"] == "!secret KEY" and texts["admin-api-key"] == "****"
    assert "plain-text-key" not in lines_of(texts)


def test_each_flag_is_read_back_as_it_was() -> None:
    flags = server().args
    texts = flag_texts(server())
    for flag, text in texts.items():
        if text != "****":
            told = edit({}, f"{flag}: {text}")
            assert told.overrides == {flag: flags[flag]}, flag
            assert type((told.overrides or {})[flag]) is type(flags[flag])


def test_what_changes_is_told_old_and_new() -> None:
    before = flag_texts(server())
    text = lines_of(before).replace("hicache-size: 150", "hicache-size: 98").replace("mem-fraction-static: 0.8\n", "")
    told = edit(before, text + "--tp-size 2\n--enable-metrics\nhicache-io-backend=direct\n".replace("hic", "--hic"))
    assert told.changes == (
        Change("hicache-size", "150", "98"),
        Change("mem-fraction-static", "0.8", None),
        Change("tp-size", None, "2"),
        Change("enable-metrics", None, "true"),
        Change("hicache-io-backend", None, "direct"),
    )
    assert told.overrides == {
        "hicache-size": 98,
        "mem-fraction-static": None,
        "tp-size": 2,
        "enable-metrics": True,
        "hicache-io-backend": "direct",
    }
    changed = server().with_args(told.overrides)
    assert changed.args["hicache-size"] == 98 and "mem-fraction-static" not in changed.args
    assert changed.args["api-key"] == Secret("KEY") and changed.args["admin-api-key"] == "plain-text-key"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hicache-size: many", "hicache-size takes a whole number of GB"),
        ("hicache-size: 1\nhicache_size: 2", "hicache-size stands there twice"),
        ("not a flag", "takes flag: value"),
        ("mem-fraction-static: 7", "a share of the GPU"),
        ("admin-api-key: '****'", ""),
        ("admin-api-key2: ****", "the stars stand for what was hidden"),
        ("port: 1", "belongs to the server"),
        ("x: {a: 1}", "a mapping is no value"),
        ("x: [1, 2", "x: "),
        ("x: null", "delete its line"),
    ],
)
def test_mistakes_are_said(line: str, words: str) -> None:
    told = edit({}, line)
    assert (words in "\n".join(told.errors)) if words else not told.errors


def test_unknown_flags_have_a_nearest_name() -> None:
    told = edit({}, "hicache-sise: 4\nhierarchical-cache-limit: 4\nfrobnicate-the-moon: 1")
    assert told.errors == () and "did you mean 'hicache-size'?" in told.warnings[0]
    assert "did you mean 'hicache-size'?" in told.warnings[1]
    assert told.warnings[2] == "frobnicate-the-moon: no known SGLang has this flag"
