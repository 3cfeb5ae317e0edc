"""A profile's file → a profile, or every mistake with its line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tui.profile.load import load, loads
from tui.profile.model import Profile, Secret
from tui.profile.problem import ProfileError, UnknownServer

WHOLE = """\
    name: dflash
    hosts:
      box:
        ssh: gpu-host
        stagger: 20
    defaults:
      host: box
      python: /workspace/sglang/bin/python
      cwd: /workspace/dflash
      env: {CUDA_HOME: /usr/local/cuda, HF_TOKEN: !secret HF_TOKEN, VERSION: 1.10, FLAG: true}
      log: logs/{name}.log
      setup: source /etc/profile.d/cuda.sh
      ready_timeout: 15m
      stall_after: 1h30m
      args:
        model-path: /models/Qwen3.6-27B
        enable-hierarchical-cache: true
        hicache-size: 150
    servers:
      gpu{gpu}:
        gpus: [0, [1, 2]]
        port: 30000+
      mtp:
        gpus: [4]
        port: 30010
        env: {CUDA_HOME: null}
        args: {speculative-algorithm: EAGLE, hicache-size: null, --enable_hierarchical_cache: false}
      other:
        command: [/opt/bin/my-server, --port, "{port}"]
        port: 30020
        log: null
    """


def profile(text: str) -> Profile:
    return loads(dedent(text), "p.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(ProfileError) as caught:
        profile(text)
    return [str(problem) for problem in caught.value.problems]


def one(server: str) -> str:
    """A file with one server ``a`` whose keys are ``server``, from line 3 on."""
    body = "\n".join(f"    {line}" for line in dedent(server).strip().splitlines())
    return f"servers:\n  a:\n{body}\n"


LOCAL = "host: local\nargs: {model-path: /m}\n"


def test_replicas_are_servers_of_their_own() -> None:
    servers = profile(WHOLE).servers
    assert [(server.name, server.port, server.gpus) for server in servers[:2]] == [
        ("gpu0", 30000, (0,)),
        ("gpu1-2", 30001, (1, 2)),
    ]
    assert [server.log for server in servers] == ["logs/gpu0.log", "logs/gpu1-2.log", "logs/mtp.log", None]
    assert servers[1].environment()["CUDA_VISIBLE_DEVICES"] == "1,2"


def test_args_and_env_are_merged_key_by_key() -> None:
    mtp = profile(WHOLE).server("mtp")
    assert mtp.argv() == (
        "/workspace/sglang/bin/python",
        *("-m", "sglang.launch_server", "--model-path", "/models/Qwen3.6-27B"),
        *("--speculative-algorithm", "EAGLE", "--port", "30010"),
    )
    assert "CUDA_HOME" not in mtp.env
    assert mtp.env["HF_TOKEN"] == Secret("HF_TOKEN")


def test_variables_keep_the_text_of_the_file() -> None:
    env = profile(WHOLE).servers[0].env
    assert (env["VERSION"], env["FLAG"]) == ("1.10", "true")


def test_durations_are_seconds() -> None:
    server = profile(WHOLE).servers[0]
    assert (server.ready_timeout, server.stall_after, server.stop_grace) == (900.0, 5400.0, 30.0)
    assert server.host.stagger == 20.0


def test_a_command_takes_the_place_of_python_and_args() -> None:
    other = profile(WHOLE).server("other")
    assert other.argv() == ("/opt/bin/my-server", "--port", "30020")
    assert other.model is None


def test_flags_become_words() -> None:
    text = one(LOCAL.replace("/m}", "/m, a: [1, 2], b: true, c: false, d: '-x', e: -1, f: 0.80, g: ''}"))
    argv = profile(text).servers[0].argv()
    assert argv[5:-2] == ("--a", "1", "2", "--b", "--d=-x", "--e=-1", "--f", "0.8", "--g", "")


def test_local_needs_no_host() -> None:
    host = profile(one(LOCAL)).servers[0].host
    assert (host.name, host.is_local) == ("local", True)


def test_the_only_host_is_the_default() -> None:
    assert profile("hosts: {box: }\nservers: {a: {args: {model-path: /m}}}").servers[0].host.ssh == "box"


def test_secrets_are_resolved_at_launch_only() -> None:
    server = profile(one("host: local\nenv: {T: !secret TOK}\nargs: {model-path: /m, api-key: !secret KEY}")).servers[0]
    assert "hush" not in server.command_line() + str(server.argv()) + str(server.environment()) + repr(server)
    values = {"KEY": "hush1", "TOK": "hush2"}
    assert "hush1" in server.argv(values.__getitem__)
    assert server.environment(values.__getitem__)["T"] == "hush2"
    assert server.secret_names() == ("KEY", "TOK")
    assert '"$KEY"' in server.command_line()
    with pytest.raises(LookupError):
        server.argv({"TOK": "x"}.__getitem__)


def test_plain_keys_are_masked_and_warned_of() -> None:
    loaded = profile(one("host: local\nargs: {model-path: /m, api-key: sk-123}"))
    assert "sk-123" not in loaded.servers[0].command_line()
    assert "sk-123" in loaded.servers[0].command_line(masked=False)
    assert [str(warning) for warning in loaded.warnings] == [
        "p.yaml:4: servers.a.args.api-key: a secret in plain text; write !secret NAME and export NAME"
    ]


def test_the_digest_follows_what_reaches_the_process() -> None:
    server = profile(WHOLE).servers[0]
    assert server.digest() == profile(WHOLE.replace("15m", "16m")).servers[0].digest()
    assert server.digest() != profile(WHOLE.replace("150", "151")).servers[0].digest()
    assert server.digest() != server.with_args({"hicache-size": None}).digest()


def test_changed_flags() -> None:
    server = profile(WHOLE).servers[0].with_args({"hicache_size": 98, "model-path": None, "x": ["a", 1]})
    assert server.args == {"enable-hierarchical-cache": True, "hicache-size": 98, "x": ("a", 1)}
    with pytest.raises(ValueError, match="port"):
        server.with_args({"--port": 1})
    with pytest.raises(ValueError, match="mapping"):
        server.with_args({"x": {}})


def test_select_names_the_nearest() -> None:
    loaded = profile(WHOLE)
    assert [server.name for server in loaded.select(["mtp", "gpu0"])] == ["gpu0", "mtp"]
    assert len(loaded.select()) == 4
    with pytest.raises(UnknownServer, match="did you mean 'mtp'"):
        loaded.select(["mpt"])


def test_shell_and_template_braces_stay() -> None:
    text = one(LOCAL + "setup: echo ${name} {{port}} {port} {name}\n")
    assert profile(text).servers[0].setup == "echo ${name} {{port}} 30000 a"


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    assert problems("""\
        nam: x
        hosts:
          box: {ssh: "a b", idenity: x}
          other: {stagger: -1}
        defaults:
          args: {hicache-size: 1.5, hicache-size: 3, enable-mixed-chunk: "true"}
          ready_timeout: 15 minutes
        servers:
          a: {host: bxo, port: 70000}
          b:
            host: box
            gpus: [0, 0]
            prt: 3
            log: x{gpu}
          gpu{gpu}: {host: box, gpus: [1, 2], port: 30001, log: /x.log, args: {model-path: /m, model_path: /n}}
          c: 3
          d: {host: box, restart: allways, port: 30100, args: {model-path: {}, port: 1}}
        """) == [
        "p.yaml:1: nam: unknown key; did you mean 'name'?",
        "p.yaml:3: hosts.box.idenity: unknown key; did you mean 'identity'?",
        "p.yaml:3: hosts.box.ssh: holds a blank; takes an SSH alias, user@host:port, or local",
        "p.yaml:4: hosts.other.stagger: out of range; 0s to 30d",
        "p.yaml:6: defaults.args.enable-mixed-chunk: is the text 'true'; write true or false, without quotes",
        "p.yaml:6: defaults.args.hicache-size: given twice",
        "p.yaml:6: defaults.args.hicache-size: takes a whole number of GB, not 1.5",
        "p.yaml:7: defaults.ready_timeout: '15 minutes' is no duration; write 90s, 15m or 2h",
        "p.yaml:9: servers.a: no model: its args, or the defaults', need model-path",
        "p.yaml:9: servers.a.host: unknown host 'bxo'; did you mean 'box'?",
        "p.yaml:9: servers.a.port: 70000 is out of range; a port is 1 to 65535",
        "p.yaml:10: servers.b: no model: its args, or the defaults', need model-path",
        "p.yaml:12: servers.b.gpus: GPU 0 stands there twice",
        "p.yaml:13: servers.b.prt: unknown key; did you mean 'port'?",
        "p.yaml:15: servers.gpu{gpu}.args.model_path: the same flag as 'model-path'",
        "p.yaml:15: servers.gpu{gpu}.log: /x.log: gpu1 has the same log as gpu2; put {gpu} or {name} into it",
        "p.yaml:15: servers.gpu{gpu}.port: 30001: gpu1 has the same port as gpu2; write 30000+ to count up",
        "p.yaml:16: servers.c: takes a mapping of keys to values",
        "p.yaml:17: servers.d.args.model-path: a mapping is no value of a flag; write JSON as a quoted string",
        "p.yaml:17: servers.d.args.port: belongs to the server: use its key 'port'",
        "p.yaml:17: servers.d.restart: 'allways' is unknown; did you mean 'always'?",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.yaml: is empty: a profile has servers"),
        ("# only a comment\n", "p.yaml: is empty: a profile has servers"),
        ("- a\n- b\n", "p.yaml:1: is no profile: the file is not a mapping of keys"),
        ("name: x\n", "p.yaml:1: servers: is missing: a profile has servers"),
        ("servers: {}\n", "p.yaml:1: servers: no servers: name at least one"),
        ("servers:\n", "p.yaml:1: servers: takes a mapping of keys to values"),
        ("servers:\n\ta: 1\n", "p.yaml:2: a tab in the indentation; YAML takes spaces only"),
        ("servers: [1\n", "p.yaml:2: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: *b\n", "p.yaml:1: not valid YAML: found undefined alias 'b'"),
        (one(LOCAL + "port: 0"), "p.yaml:5: servers.a.port: 0 is out of range; a port is 1 to 65535"),
        (one(LOCAL + "port: 65535++"), "p.yaml:5: servers.a.port: takes a port such as 30000, or 30000+ to count up; "
         "not '65535++'"),
        (one(LOCAL + "gpus: [[0, 1], 2]"), "p.yaml:5: servers.a.gpus: a list of lists is for replicas: put {gpu} into "
         "the name"),
        (one(LOCAL + "gpus: [-1]"), "p.yaml:5: servers.a.gpus: -1 is out of range; a GPU is 0 to 1023"),
        (one(LOCAL + "cwd: 3"), "p.yaml:5: servers.a.cwd: takes text, not a number"),
        (one(LOCAL + "stall_after: 0s"), "p.yaml:5: servers.a.stall_after: must be longer than 0s"),
        (one(LOCAL + "env: {A B: x}"), "p.yaml:5: servers.a.env.A B: holds ' '; a variable's name "
         "takes letters, digits and '_', no digit first"),
        (one(LOCAL + "env: {A: [1]}"), "p.yaml:5: servers.a.env.A: takes text, not a list"),
        (one(LOCAL + "command: ls -l"), "p.yaml:5: servers.a.command: takes a list of words: [/opt/bin/my-server, "
         "--port, '{port}']"),
        (one(LOCAL + "command: [ls]"), "p.yaml:4: servers.a.args: args do nothing beside a command"),
        (one(LOCAL + "log: x{gpu}.log"), "p.yaml:5: servers.a.log: uses {gpu}, but the server has no gpus"),
        (one(LOCAL + "setup: \"a\\0b\""), "p.yaml:5: servers.a.setup: holds a NUL character"),
        (one(LOCAL + "cwd: !home x"), "p.yaml:5: servers.a.cwd: unknown tag !home; only !secret NAME is known"),
        (one(LOCAL + "env: {A: !secret a-b}"), "p.yaml:5: servers.a.env.A: !secret takes the name of an environment "
         "variable: holds '-'; a variable's name takes letters, digits and '_', no digit first"),
        (one(LOCAL + "gpus: [1]\nenv: {CUDA_VISIBLE_DEVICES: 1}"), "p.yaml:6: servers.a.env.CUDA_VISIBLE_DEVICES: set "
         "by gpus; leave one of them out"),
        (one(LOCAL.replace("/m", "/m, mem-fraction-static: 85")), "p.yaml:4: servers.a.args.mem-fraction-static: takes "
         "a share of the GPU between 0 and 1, not 85"),
        ("servers: {a b: {host: local, args: {model-path: x}}}", "p.yaml:1: servers.a b: holds ' '; a name takes "
         "letters, digits, '.', '_' and '-', a letter or digit first"),
        ("servers: {'gpu{gpu}': {host: local, args: {model-path: x}}}", "p.yaml:1: servers.gpu{gpu}: a name with {gpu} "
         "needs a list of gpus"),
        ("servers: {a: {args: {model-path: x}}}", "p.yaml:1: servers.a: no host: say on which it runs; valid: local"),
        ("hosts: {b: {ssh: -oProxyCommand=x}}\nservers: {a: {args: {model-path: x}}}", "p.yaml:1: hosts.b.ssh: has "
         "a '-' in front, which ssh takes for an option; takes an SSH alias, user@host:port, or local"),
    ],
)  # fmt: skip
def test_one_mistake(text: str, message: str) -> None:
    assert problems(text) == [message]


LONG = "a" * 60
NAMES = "a name takes letters, digits, '.', '_' and '-', a letter or digit first"
ALIAS = "takes an SSH alias, user@host:port, or local"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (LONG + "bcdef", "has 65 characters; at most 64"),
        ("-a", f"begins with '-'; {NAMES}"),
        ("a/b", f"holds '/'; {NAMES}"),
        ("é", f"holds 'é'; {NAMES}"),
        ("''", "is empty"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name: str, why: str) -> None:
    rest = "{host: local, args: {model-path: x}}"
    key = name.strip("'")
    assert problems(f"servers:\n  {name}: {rest}")[-1] == f"p.yaml:2: servers.{key}: {why}"
    hosts = f"hosts:\n  {name}: {{ssh: x}}\nservers: {{a: {rest}}}"
    assert problems(hosts) == [f"p.yaml:2: hosts.{key}: {why}"]
    assert problems(f"name: {name}\nservers: {{a: {rest}}}") == [f"p.yaml:1: name: {why}"]


def test_a_replicas_name_is_judged_as_it_comes_out() -> None:
    rest = "{host: local, gpus: [0, 1, 10], port: 30000+, args: {model-path: x}}"
    at = f"p.yaml:1: servers.{LONG}bcd-{{gpu}}: with {{gpu}} filled in, it has"
    told = problems(f"servers: {{'{LONG}bcd-{{gpu}}': {rest}}}")
    assert told == [f"{at} 65 characters; at most 64", f"{at} 66 characters; at most 64"]
    (told_of_a_token,) = problems("servers: {'a-{port}': {host: local, args: {model-path: x}}}")
    assert told_of_a_token.endswith(f"holds '{{'; {NAMES}, and {{gpu}}, the only token that is filled in here")


@pytest.mark.parametrize(
    ("ssh", "why"),
    [
        ("me@-x", f"has a '-' in front, which ssh takes for an option; {ALIAS}"),
        ("2001:db8::1", "an IPv6 address stands in brackets: [2001:db8::1]"),
        ("'[::g]'", f"has no IPv6 address in its brackets; {ALIAS}"),
        ("box:ssh", f"has no number for a port, 'ssh'; {ALIAS}"),
        ("box:0", "0 is out of range; a port is 1 to 65535"),
        ("'@box'", ALIAS),
        ("a@b@c", ALIAS),
        ("':22'", ALIAS),
    ],
)
def test_what_is_wrong_with_an_address_is_said(ssh: str, why: str) -> None:
    text = f"hosts:\n  b: {{ssh: {ssh}}}\nservers: {{a: {{args: {{model-path: x}}}}}}"
    assert problems(text) == [f"p.yaml:2: hosts.b.ssh: {why}"]


@pytest.mark.parametrize("ssh", ["box", "me@box", "box:22", "'me@[::1]:22'", "'[fe80::1%eth0]'", "me@10.0.0.1:2222"])
def test_an_address(ssh: str) -> None:
    assert profile(f"hosts:\n  b: {{ssh: {ssh}}}\nservers: {{a: {{args: {{model-path: x}}}}}}").hosts[0].ssh


def test_a_flag_or_variable_that_is_none() -> None:
    text = one(LOCAL.replace("/m", "/m, 'a b': 1, -x: 2")) + "\n    env: {1A: x}"
    assert problems(text) == [
        "p.yaml:4: servers.a.args.-x: begins with '-'; a flag takes letters, digits, '.' and '-', a letter or digit "
        "first",
        "p.yaml:4: servers.a.args.a b: holds ' '; a flag takes letters, digits, '.' and '-', a letter or digit first",
        "p.yaml:6: servers.a.env.1A: begins with '1'; a variable's name takes letters, digits and '_', no digit first",
    ]


def test_servers_of_one_machine_share_no_port_and_no_log() -> None:
    assert problems("""\
        hosts: {x: {ssh: m}, y: {ssh: m}}
        defaults: {args: {model-path: q}, cwd: /w, log: logs/../a.log}
        servers:
          a: {host: x}
          b: {host: y, log: /w/a.log}
        """) == [
        "p.yaml:5: servers.b: 30000: a has the same port as b",
        "p.yaml:5: servers.b.log: /w/a.log: a has the same log as b; put {gpu} or {name} into it",
    ]


def test_doubtful_things_are_warnings() -> None:
    loaded = profile("""\
        defaults: {host: local, gpus: [0], args: {model-path: q, hierarchical-cache-limit: 150, x: "yes"}}
        servers:
          a: {port: 1, cwd: "/{gpus}"}
          b: {port: 2}
        """)
    assert [str(warning) for warning in loaded.warnings] == [
        "p.yaml:1: defaults.args.hierarchical-cache-limit: no SGLang has this flag; did you mean 'hicache-size'?",
        "p.yaml:1: defaults.args.x: passes the text 'yes'; write true without quotes for a flag without a value",
        "p.yaml:3: servers.a.cwd: {gpus} is left as it is; did you mean {gpu}?",
        "p.yaml:1: defaults.gpus: b shares GPU 0 of local with a",
    ]


def test_anchors_and_merges() -> None:
    loaded = profile("""\
        servers:
          a: &base {host: local, args: &args {model-path: q, tp-size: 2}}
          b: {<<: *base, port: 30001, args: {<<: *args, tp-size: 4}}
        """)
    assert [server.args["tp-size"] for server in loaded.servers] == [2, 4]


def test_aliases_cannot_multiply_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert "nested or repeated too much" in problems("\n".join(lines))[0]
    assert "nested or repeated too much" in problems("a: &a [*a]")[0]


def test_files_that_are_no_profile(tmp_path: Path) -> None:
    binary = tmp_path / "b.yaml"
    binary.write_bytes(bytes(range(256)))
    huge = tmp_path / "h.yaml"
    huge.write_bytes(b"#" * (1 << 20) + b"\n#")
    expected = {
        tmp_path: "is a directory; a profile is a YAML file",
        binary: "is no text in UTF-8: no profile",
        huge: "is larger than 1 MiB: no profile",
        tmp_path / "none.yaml": "no such file",
    }
    for path, message in expected.items():
        with pytest.raises(ProfileError) as caught:
            load(path)
        assert str(caught.value) == f"{path}: {message}"


def test_the_file_gives_the_name(tmp_path: Path) -> None:
    path = tmp_path / "night run.yaml"
    path.write_text(one(LOCAL))
    assert load(path).name == "profile"
    path = path.rename(tmp_path / "night.yaml")
    assert (load(path).name, load(path).path) == ("night", path)


@pytest.mark.parametrize("line", ["model-path: /m", "arg: {model-path: /m}", "comand: [serve]"])
def test_a_model_in_the_wrong_place_is_one_mistake(line: str) -> None:
    with pytest.raises(ProfileError) as caught:
        loads(f"servers:\n  a:\n    host: local\n    {line}\n")
    (problem,) = caught.value.problems
    assert problem.line == 4 and problem.message.startswith("unknown key")
