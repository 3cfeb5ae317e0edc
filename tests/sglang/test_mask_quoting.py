"""No piece of a secret is left, however it is quoted; what follows it stays; and no line takes long."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tui.sglang.facts import read
from tui.sglang.mask import mask, mask_text, mask_words
from tui.view.log.clean import MAX_BYTES, shown

# how logs write a secret, and what they write behind it
WAYS: dict[str, tuple[Callable[[str], str], str]] = {
    "dump": (lambda s: f"server_args=ServerArgs(model='m', api_key={s!r}", ", port=1, name='x')"),
    "dict": (lambda s: f"server_args={{'model': 'm', 'admin_api_key': {s!r}", ", 'port': 1, 'name': 'x'}"),
    "json": (lambda s: json.dumps({"model": "m", "api_key": s})[:-1], ', "port": 1}'),
    "compact json": (lambda s: '{"hf_token":' + json.dumps(s), ',"port":1,"name":"x"}'),
    "json in json": (lambda s: json.dumps(json.dumps({"api_key": s}))[:-2], r', \"port\": 1}"'),
    "flag=": (lambda s: f"python -m x --api-key={shlex.quote(s)}", " --port 1 --name x"),
    "flag": (lambda s: f"python -m x --api-key {shlex.quote(s)}", " --port 1 --name x"),
    "joined": (lambda s: shlex.join(["python", "--admin-api-key", s]), " --port 1"),
    "joined=": (lambda s: shlex.join(["python", f"--api-key={s}"]), " --port 1"),
    "list": (lambda s: repr(["python", "--api-key", s])[:-1], ", '--port', '1']"),
    "list=": (lambda s: repr(["python", f"--api-key={s}"])[:-1], ", '--port', '1']"),
    "json list": (lambda s: json.dumps(["--api-key", s])[:-1], ', "--port", "1"]'),
    "environment": (lambda s: f"export HF_TOKEN={shlex.quote(s)}", " PORT=1"),
    "environment=": (lambda s: "env " + shlex.quote(f"HF_TOKEN={s}"), " PORT=1"),
    "environ": (lambda s: repr({"HF_TOKEN": s})[:-1], ", 'PORT': '1'}"),
    "error": (lambda s: f"ValueError: api_key={s!r}", " is no key"),
    "yaml": (lambda s: f"  api_key: {json.dumps(s)}", "\n  port: 1"),
}
SECRETS = st.text(st.sampled_from("ab9-_.$%\\'\"'\" ,:;=()[]{}&#<>/*é"), min_size=4, max_size=30) | st.text(
    st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc", "Cf", "Zs", "Zl"]), min_size=4
)


def is_value(secret: str) -> bool:
    """Not what stands for no value, a number or a variable."""
    return (
        secret not in ("None", "True", "true", "null", "False", "false") and not secret.isdigit() and secret[0] != "$"
    )


def pieces(secret: str, way: str, elsewhere: str) -> set[str]:
    """The four-character pieces of a secret, as it was and as it was written, that stand nowhere else."""
    written = WAYS[way][0](secret)
    forms = [form for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]) if form in written] or [secret]
    return {form[at : at + 4] for form in forms for at in range(len(form) - 3)} - {
        elsewhere[at : at + 4] for at in range(len(elsewhere) - 3)
    }


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None)
@given(secret=SECRETS.filter(is_value))
@example(secret='s3cr3t-%%Zq"x')
@example(secret="it's-mine")
@example(secret="it's\"mine")
@example(secret="ends with \\")
@example(secret="a\\'b, c' d")
@example(secret="\\'' xyz")
@example(secret="a=b,c=d,e)f")
@example(secret="''\"'\"''abcd")
def test_no_piece_is_left_and_what_follows_is_kept(way: str, secret: str) -> None:
    write, behind = WAYS[way]
    masked = mask_text(write(secret) + behind)
    elsewhere = mask_text(write("canary-x") + behind) + mask_text(write("canary x") + behind)
    assert "canary" not in elsewhere and "****" in masked
    assert not [piece for piece in pieces(secret, way, elsewhere) if piece in masked]
    assert mask_text(masked) == masked
    assert masked.endswith(behind)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None)
@given(secret=SECRETS.filter(is_value), data=st.data())
def test_a_line_that_was_cut_within_the_value_is_masked_to_its_end(way: str, secret: str, data: st.DataObject) -> None:
    written = WAYS[way][0](secret)
    start = WAYS[way][0]("canary-x").index("canary-x")
    cut = written[: data.draw(st.integers(min(start, len(written)), len(written)))]
    masked = mask_text(cut)
    left = mask_text(WAYS[way][0]("canary-x")) + mask_text(WAYS[way][0]("canary x")) + cut[:start]
    assert not [piece for piece in pieces(secret, way, left) if piece in masked]


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ('--api-key=foo"bar --port 1', "--api-key=**** --port 1"),
        ("api_key=foo\"bar'baz, port=1", "api_key=****, port=1"),
        ("ServerArgs(api_key=foo)", "ServerArgs(api_key=****)"),
        ("a=1,api_key=foo,port=3", "a=1,api_key=****,port=3"),
        ("{api_key: abc'd, port: 1}", "{api_key: ****, port: 1}"),
        ("  api_key: some 'thing' here", "  api_key: ****"),
        ("box  |   api_key: some 'thing' here", "box  |   api_key: ****"),
        ("[2026-01-01 10:00:00 TP0] api_key: some 'thing' here", "[2026-01-01 10:00:00 TP0] api_key: ****"),
        ("bash -c 'x --hf-token abc' y", "bash -c 'x --hf-token ****' y"),
        (
            '{"message": "bad api_key=\'abc d\'", "level": "error"}',
            '{"message": "bad api_key=\'****\'", "level": "error"}',
        ),
        (r"""extra='{"api_key": "a\\"b c"}', port=1""", """extra='{"api_key": "****"}', port=1"""),
        ("'x-api-key': 'a b', 'Authorization': 'Bearer it\"s'", "'x-api-key': '****', 'Authorization': 'Bearer ****'"),
        ("http://x/?api_key=foo&x=1", "http://x/?api_key=****&x=1"),
        ("--api-key='one line\nthe next", "--api-key='****\nthe next"),
        ("api_key=\x1b[32m'a b'\x1b[0m, x", "api_key=\x1b[32m'****'\x1b[0m, x"),
        ("HF_TOKEN=None-abcd", "HF_TOKEN=****"),
    ],
)
def test_where_a_value_ends(line: str, masked: str) -> None:
    assert mask_text(line) == masked


@pytest.mark.parametrize(
    "line",
    [
        "api_key='', admin_api_key=None, hf_token=\"None\"",
        'export HF_TOKEN="$HF_TOKEN"',
        "servers.a.args.api-key: unknown environment variable",
        "api_key: !secret KEY",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert mask_text(line) == line


@pytest.mark.parametrize("before", ["", "api_key=", "api_key='", "--api-key ", "'--api-key=", 'HF_TOKEN=a"', "token: "])
@pytest.mark.parametrize("repeated", ["'", '"', "\\", "'\"", "\\'", "'),", ",a", ")", "'\\' ", "api_key='\\' ", "b'"])
def test_a_line_of_quotes_takes_linear_time(before: str, repeated: str) -> None:
    line = (before + repeated * (100_000 // len(repeated))).encode()
    begun = time.process_time()
    mask(line)
    assert time.process_time() - begun < 10  # quadratic would be minutes


def test_what_is_kept_of_a_log_holds_no_piece() -> None:
    secret = "s3cr3t-%%Zq\"x' y"
    log = f"[2026-07-30 13:35:11] server_args=ServerArgs(model_path='m', api_key={secret!r}, port=1)\n"
    log += f"[2026-07-30 13:35:12] Health check failed. Server api_key={secret!r}\nValueError: api_key={secret!r}\n"
    told = read([log.encode()])
    assert told.args["api_key"] == "****" and told.args["port"] == "1"
    assert "cr3t" not in repr(told) and "Zq" not in repr(told)


def test_a_long_line_is_masked_before_it_is_cut() -> None:
    head = b"x" * (MAX_BYTES - 30) + b" api_key='"
    assert shown(head + b"canary " * 9000 + b"'")[0].endswith("x api_key='****")
    assert " api_key='****' and so on" in shown(head + b"canary-one' and so on" + b" y" * 99_999)[0]
    bar = b"old " * 40_000 + b"canary'\rapi_key='canary"
    assert shown(bar) == ("api_key='****",)


def test_a_command_line_in_its_words() -> None:
    words = (
        "python",
        "--api-key",
        "it's a b",
        "--hf-token=x y",
        "HF_TOKEN=a b",
        "--port",
        "1",
        "--api-key",
        "--port=2",
    )
    assert mask_words(words) == (
        "python", "--api-key", "****", "--hf-token=****", "HF_TOKEN=****", "--port", "1", "--api-key", "--port=2",
    )  # fmt: skip
    assert mask_words(["bash", "-c", "x --api-key 'a b' y"])[2] == "x --api-key '****' y"
