"""YAML text → plain values that remember their lines.

The node tree is read rather than ready objects, because it keeps every line, quote and duplicate key, so that all
mistakes of a file can be told at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from tui.profile.model import Secret
from tui.profile.problem import Problem, ProfileError
from tui.profile.words import VARIABLE

MAX_NODES = 20_000  # a profile has hundreds; aliases can multiply without end
MAX_DEPTH = 30

Path = tuple[str | int, ...]


@dataclass(slots=True)
class Source:
    """A file's values and where they stand."""

    file: str
    value: object = None
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)  # scalars as written, before they became numbers
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of ``path``, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    def problem(self, path: Path, message: str) -> Problem:
        return Problem(self.file, self.line(path), ".".join(map(str, path)), message)


def read(text: str, file: str) -> Source:
    """Parse ``text``; raises ``ProfileError`` where it is no YAML at all. Lesser mistakes are in ``problems``."""
    tabs = [
        Problem(file, number, "", "a tab in the indentation; YAML takes spaces only")
        for number, line in enumerate(text.splitlines(), 1)
        if re.match(r" *\t\s*[^\s#]", line)
    ]
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "not YAML"
        problem = Problem(file, mark.line + 1 if mark else 0, "", f"not valid YAML: {message}")
        raise ProfileError(tabs or [problem]) from None
    except ReaderError as error:
        raise ProfileError([Problem(file, 0, "", f"not text: {error.reason}")]) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise ProfileError([Problem(file, 0, "", f"not valid YAML: {error}")]) from None
    source = Source(file)
    if root is not None:
        source.value = _Reader(source).value(root, (), 0)
    return source


class _Reader:
    """Turns nodes into values, and notes lines and mistakes in a ``Source``."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._count = 0

    def value(self, node: Node, path: Path, depth: int) -> object:
        self._count += 1
        if self._count > MAX_NODES or depth > MAX_DEPTH:
            raise ProfileError(
                [Problem(self._source.file, node.start_mark.line + 1, "", "nested or repeated too much")]
            )
        self._source.lines.setdefault(path, node.start_mark.line + 1)
        match node:
            case MappingNode():
                return self._mapping(node, path, depth)
            case SequenceNode():
                return [self.value(child, (*path, index), depth + 1) for index, child in enumerate(node.value)]
            case _:
                return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, object]:
        merged: dict[str, object] = {}
        own: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._note(line, path, "a key must be a word")
            elif key_node.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(value_node, path, depth)
            elif key_node.value in own:
                self._note(line, (*path, key_node.value), "given twice")
            else:
                key = key_node.value
                self._source.lines[(*path, key)] = line
                own[key] = self.value(value_node, (*path, key), depth + 1)
        return merged | own

    def _merged(self, node: Node, path: Path, depth: int) -> dict[str, object]:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, object] = {}
        for part in reversed(parts):
            value = self.value(part, path, depth + 1)
            if isinstance(value, dict):
                merged |= value
            else:
                self._note(part.start_mark.line + 1, path, "<< takes a mapping")
        return merged

    def _scalar(self, node: Node, path: Path) -> object:
        text = str(node.value)
        self._source.texts[path] = text
        kind = str(node.tag).removeprefix("tag:yaml.org,2002:")
        if kind == "!secret":
            return self._secret(node, path, text)
        if kind.startswith("!") or kind not in ("str", "int", "float", "bool", "null", "timestamp"):
            self._note(node.start_mark.line + 1, path, f"unknown tag {node.tag}; only !secret NAME is known")
            return text
        if "\0" in text:
            self._note(node.start_mark.line + 1, path, "holds a NUL character")
        return _CONVERT.get(kind, str)(text)

    def _secret(self, node: Node, path: Path, text: str) -> Secret:
        if why := VARIABLE.error(text):
            self._note(node.start_mark.line + 1, path, f"!secret takes the name of an environment variable: {why}")
        return Secret(text)

    def _note(self, line: int, path: Path, message: str) -> None:
        self._source.problems.append(Problem(self._source.file, line, ".".join(map(str, path)), message))


def _int(text: str) -> int | str:
    digits = text.replace("_", "").lower()
    base = 16 if "0x" in digits else 8 if "0o" in digits else 2 if "0b" in digits else 10
    try:
        return int(digits, base)
    except ValueError:
        return text


def _float(text: str) -> float | str:
    try:
        return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text


_CONVERT: dict[str, Callable[[str], object]] = {
    "int": _int,
    "float": _float,
    "bool": lambda text: text.lower() == "true",
    "null": lambda _text: None,
}
