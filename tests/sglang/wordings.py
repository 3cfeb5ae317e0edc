"""What two releases of SGLang say differently: ``python -m tests.sglang.wordings OLD NEW``, two unpacked wheels.

Log messages and parts of them, texts of errors, flags, metrics and HTTP paths that went (``-``) and came (``+``), as
the source has them: ``{}`` stands for a value. Each line names the file. What came is what the tables of
``tui/sglang`` may not know yet.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LOGGED = frozenset({"debug", "info", "warning", "warning_once", "error", "exception", "critical", "print", "log_info"})
METRIC = re.compile(r"sglang:\w+")
ROUTES = frozenset({"get", "post", "put", "delete", "api_route"})
Words = dict[tuple[str, str], str]  # (what it is, its text) → the file


def template(node: ast.expr) -> str | None:
    """A text of the source with ``{}`` for each value in it; ``None`` for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(template(part) or "" if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            first, second = template(left), template(right)
            return None if first is None else first + (second if second is not None else "")
    return None


def _named(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _of_node(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What a node of the source says."""
    match node:
        case ast.Call(args=[first, *_]) if (text := template(first)) is not None:
            name = _named(node)
            if name in LOGGED:
                yield "log", text
            elif name in ROUTES and text.startswith("/"):
                yield "path", text
            elif name.endswith(("Error", "Exception")):
                yield "error", text
        case ast.AugAssign(value=value) | ast.Assign(value=value) if ": {}" in (text := template(value) or ""):
            yield "part", text  # of messages that are put together: batch lines
        case ast.Constant(value=str(text)):
            yield from (("metric", found) for found in METRIC.findall(text))


def _flags(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            targets = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
            yield from (("flag", target.id) for target in targets if isinstance(target, ast.Name))


def words(release: Path) -> Words:
    """All that the server of an unpacked release can say."""
    found: Words = {}
    for file in sorted((release / "sglang/srt").rglob("*.py")):
        try:
            tree = ast.parse(file.read_bytes())
        except SyntaxError:
            continue
        path = file.relative_to(release / "sglang/srt").as_posix()
        said = [each for node in ast.walk(tree) for each in _of_node(node)]
        if path == "server_args.py" or path.startswith("arg_groups/fields"):
            said += _flags(tree)
        for kind, text in said:
            found.setdefault((kind, " ".join(text.split())), path)
    return found


def difference(old: Words, new: Words) -> Iterator[str]:
    """A line for each text that went or came, sorted by what it is."""
    for kind, text in sorted(old.keys() ^ new.keys()):
        sign, where = ("-", old) if (kind, text) in old else ("+", new)
        shown = "".join(c if c.isprintable() else "?" for c in text[:300])
        yield f"{sign} {kind:<6} {shown}    [{where[kind, text]}]"


if __name__ == "__main__":
    for line in difference(words(Path(sys.argv[1])), words(Path(sys.argv[2]))):
        print(line)
