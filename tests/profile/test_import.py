"""A launch line or script → a profile that launches the same."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tui.profile.importer import NothingToImport, import_script
from tui.profile.load import loads
from tui.profile.model import Server


def imported(text: str) -> list[Server]:
    return list(loads(import_script(dedent(text))[0]).servers)


def test_a_launch_line_as_people_type_it() -> None:
    (server,) = imported(
        "CUDA_VISIBLE_DEVICES=0 nohup setsid /ws/sglang/bin/python -m sglang.launch_server --model-path /models/Q "
        "--tp 2 --mem-fraction-static=0.85 --cuda-graph-bs 1 2 4 --enable-hierarchical-cache --hicache-size 150 "
        "--json-model-override-args '{\"a\": 1}' --host 0.0.0.0 --port 30001 > logs/x.log 2>&1 &"
    )
    assert (server.name, server.gpus, server.port, server.log) == ("gpu0", (0,), 30001, "logs/x.log")
    assert server.args == {
        "model-path": "/models/Q",
        "tp": 2,
        "mem-fraction-static": 0.85,
        "cuda-graph-bs": (1, 2, 4),
        "enable-hierarchical-cache": True,
        "hicache-size": 150,
        "json-model-override-args": '{"a": 1}',
        "host": "0.0.0.0",
    }


@pytest.mark.parametrize(
    "line",
    [
        "python -m sglang.launch_server --model-path /m --tp 2 > x.log",
        "python -m sglang.launch_server --model-path /m --tp 2 >>x.log 2>&1",
        "python -m sglang.launch_server --model-path /m --tp 2 &> x.log &",
        "python -m sglang.launch_server --model-path /m --tp 2 2>&1 | tee -a x.log",
        "python -m sglang.launch_server --model-path /m --tp 2 2> x.log; true",
        "python -m sglang.launch_server --model-path /m --tp 2 2> errors.log > x.log",
        "python -m sglang.launch_server \\\n  --model-path /m \\\n  --tp 2 1> x.log  # the launch",
        "bash -c 'python -m sglang.launch_server --model-path /m --tp 2 > x.log'",
        "tmux new -d -s s 'python -m sglang.launch_server --model-path /m --tp 2 > x.log'",
        "M=/m; python -m sglang.launch_server --model-path $M --tp ${TP:-2} > x.log",
    ],
)
def test_wordings_of_the_same_launch(line: str) -> None:
    (server,) = imported(line)
    assert (server.args, server.log, server.python) == ({"model-path": "/m", "tp": 2}, "x.log", "python")


def test_a_launch_over_ssh() -> None:
    (server,) = imported(
        'ssh -i ~/.ssh/k -p 2222 -J bastion me@box "cd /w && CUDA_VISIBLE_DEVICES=0,1 nohup sglang serve /m '
        '--port 30000 > logs/a.log 2>&1 &"'
    )
    host = server.host
    assert (host.name, host.ssh, host.identity, host.jump) == ("box", "me@box:2222", "~/.ssh/k", "bastion")
    assert (server.cwd, server.gpus, server.log) == ("/w", (0, 1), "logs/a.log")
    assert server.argv() == ("python3", "-m", "sglang.launch_server", "--model-path", "/m", "--port", "30000")


def test_a_script_with_two_servers() -> None:
    first, second = imported("""\
        #!/bin/bash
        # start everything
        export HF_HOME=/hf
        source /opt/venv/bin/activate
        cd /w
        CUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server --model-path /m --port 30000 > a.log 2>&1 &
        CUDA_VISIBLE_DEVICES=1 python -m sglang.launch_server --model-path /m --port 30001 > b.log 2>&1 &
        echo "sglang is starting"
        """)
    assert (first.name, second.name, first.log, second.log) == ("gpu0", "gpu1", "a.log", "b.log")
    assert first.env == {"HF_HOME": "/hf"}
    assert first.setup == "source /opt/venv/bin/activate"


def test_keys_do_not_get_into_the_profile() -> None:
    text, notes = import_script(
        "HF_TOKEN=hf_abc python -m sglang.launch_server --model-path /m --api-key sk-abc --admin-api-key $ADMIN"
    )
    assert "hf_abc" not in text and "sk-abc" not in text
    assert loads(text).servers[0].secret_names() == ("ADMIN", "API_KEY", "HF_TOKEN")
    assert notes == [
        "!secret ADMIN: export ADMIN where you launch from",
        "!secret API_KEY: export API_KEY where you launch from",
        "!secret HF_TOKEN: export HF_TOKEN where you launch from",
    ]


def test_variables_that_nobody_sets_are_named() -> None:
    _, notes = import_script("python -m sglang.launch_server --model-path $MODEL")
    assert notes == ["$MODEL: the script does not say what $MODEL is; put the value in"]


def test_what_is_printed_imports_to_itself() -> None:
    """Round trip: profile → its command line → profile."""
    text = "CUDA_VISIBLE_DEVICES=3 /v/python -m sglang.launch_server --model-path '/a b' --x -1 --y 0.5 --z a b --w"
    (first,) = imported(text)
    (second,) = imported(first.command_line())
    assert first == second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ls -l", "launches no SGLang server"),
        ("", "launches no SGLang server"),
        ("python -m vllm.entrypoints.api_server", "launches no SGLang server"),
        ("python -m sglang.launch_server 'x", "cannot be read as a shell command: no closing quotation"),
    ],
)
def test_nothing_to_import(text: str, message: str) -> None:
    with pytest.raises(NothingToImport, match=message):
        import_script(text)
