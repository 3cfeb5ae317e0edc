"""Just enough of a POSIX shell to read launch scripts: words, variables, redirections, commands in commands.

Nothing is run, and nothing of this machine's environment is looked at.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SSH_WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
_MAX_DEPTH = 5
_ERRORS = "\x01"  # stands for the 2 of `2> file`, which is no word: `--tp 2 > file` has one


@dataclass(frozen=True, slots=True)
class Remote:
    """Where ``ssh`` goes."""

    destination: str
    identity: str | None = None
    jump: str | None = None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command with what stands around it."""

    words: tuple[str, ...]
    env: dict[str, str]  # exported, or set in front of it
    cwd: str | None = None
    output: str | None = None  # the file that its standard output, or else its errors, go to
    setup: tuple[str, ...] = ()  # `source …` lines before it
    remote: Remote | None = None


@dataclass(slots=True)
class _Shell:
    """What earlier commands of a script have changed."""

    variables: dict[str, str] = field(default_factory=dict)
    exported: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    setup: tuple[str, ...] = ()
    remote: Remote | None = None


def commands(script: str, _shell: _Shell | None = None, _depth: int = 0) -> Iterator[SimpleCommand]:
    """The commands of ``script`` in order, also those in quotes after ``ssh HOST``, ``sh -c`` or ``tmux new``.

    Raises ``ValueError`` for a quote that is not closed.
    """
    shell = _shell or _Shell()
    pipe_from: SimpleCommand | None = None
    for words, output, separator in _statements(script):
        words = [_expanded(word, shell.variables) for word in words]
        command = _simple(words, _expanded(output, shell.variables) if output else None, shell)
        if pipe_from is not None and command is not None and command.words[0] == "tee":
            files = [word for word in command.words[1:] if not word.startswith("-")]
            command = replace(pipe_from, output=pipe_from.output or next(iter(files), None))
        elif pipe_from is not None:
            yield from _with_inner(pipe_from, shell, _depth)
        pipe_from = command if separator == "|" else None
        if command is not None and pipe_from is None:
            yield from _with_inner(command, shell, _depth)
    if pipe_from is not None:
        yield from _with_inner(pipe_from, shell, _depth)


def _with_inner(command: SimpleCommand, shell: _Shell, depth: int) -> Iterator[SimpleCommand]:
    """The command, or the commands that it hands on to another shell as one quoted word."""
    words = list(command.words)
    remote = shell.remote
    if words[0].rpartition("/")[2] == "ssh":
        remote, words = _ssh(words)
        words = [" ".join(words)] if words else []
    inner = [word for word in words if re.search(r"\s", word) and "sglang" in word]
    if not inner or depth >= _MAX_DEPTH:
        yield command
        return
    for word in inner:
        nested = _Shell(dict(shell.variables), dict(command.env), command.cwd, command.setup, remote)
        if remote is not shell.remote:  # nothing of this side's shell goes over
            nested = _Shell(remote=remote)
        for found in commands(word, nested, depth + 1):
            yield found if found.output or remote is not shell.remote else replace(found, output=command.output)


def _simple(words: list[str], output: str | None, shell: _Shell) -> SimpleCommand | None:
    """The command, or ``None`` where it only changes the shell."""
    env: dict[str, str] = {}
    if words and words[0] in ("export", "declare", "local"):
        for word in words[1:]:
            if _ASSIGNMENT.match(word):
                name, _, value = word.partition("=")
                shell.variables[name] = shell.exported[name] = value
            elif word in shell.variables:
                shell.exported[word] = shell.variables[word]
        return None
    while words and (
        _ASSIGNMENT.match(words[0]) or words[0] in ("env", "nohup", "setsid", "exec", "time", "then", "do")
    ):
        word = words.pop(0)
        if "=" in word:
            name, _, value = word.partition("=")
            env[name] = value
    if not words:
        shell.variables |= env
        return None
    if words[0] in ("cd", "pushd") and len(words) > 1:
        shell.cwd = words[1] if words[1].startswith(("/", "~")) or not shell.cwd else f"{shell.cwd}/{words[1]}"
        return None
    if words[0] in ("source", ".", "module", "conda", "mamba", "ulimit") and len(words) > 1:
        shell.setup = (*shell.setup, shlex.join(words))
        return None
    return SimpleCommand(tuple(words), {**shell.exported, **env}, shell.cwd, output, shell.setup, shell.remote)


def _statements(script: str) -> Iterator[tuple[list[str], str | None, str]]:
    """(words, file of its output, separator after it) of each statement."""
    text = re.sub(r"\\\r?\n", " ", script)
    text = "\n".join(_without_comment(line) for line in text.splitlines())
    text = re.sub(r"(?<=\s)\d?>&\s*\d\b", " ", text)  # 2>&1 names no file
    text = re.sub(r"(?<=\s)1(>>?)", r"\1", text)
    text = re.sub(r"(?<=\s)2(>>?)", f" {_ERRORS} \\1", text)
    lexer = shlex.shlex(text + "\n", posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    output: str | None = None
    errors: str | None = None
    redirect = ""
    for token in lexer:
        if token and not token.strip(";&|<>()\n"):
            if ">" in token or "<" in token:
                redirect = token
                continue
            if words or output:
                yield words, output or errors, token.strip("\n") or "\n"
            words, output, errors, redirect = [], None, None, ""
        elif "<" in redirect:
            redirect = ""
        elif redirect:
            if words and words[-1] == _ERRORS:
                words.pop()
                errors = token
            else:
                output = token
            redirect = ""
        else:
            words.append(token)


def _without_comment(line: str) -> str:
    for found in re.finditer(r"(?:^|(?<=\s))#", line):
        before = line[: found.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            return before
    return line


def _expanded(word: str, variables: dict[str, str]) -> str:
    """``word`` with the variables that the script itself sets; others stay as they are."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return variables.get(name, found[3] if found[3] is not None else found[0])

    return _VARIABLE.sub(value, word)


def _ssh(words: list[str]) -> tuple[Remote | None, list[str]]:
    """The destination of an ``ssh`` command and the words of the command that it runs there."""
    options: dict[str, str] = {}
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        letter, value = option[1:2], option[2:]
        if letter in _SSH_WITH_VALUE:
            options[letter] = value or (rest.pop(0) if rest else "")
    if not rest:
        return None, []
    destination = rest.pop(0)
    if options.get("l") and "@" not in destination:
        destination = f"{options['l']}@{destination}"
    if options.get("p"):
        destination = f"{destination}:{options['p']}"
    return Remote(destination, options.get("i"), options.get("J")), rest
