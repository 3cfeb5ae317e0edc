"""Secrets out of lines: whatever leaves the raw spool passes through here."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator

from tui.sglang.secret_values import end_of_quoted, end_of_value

MASK = b"****"
SHORTEST = 6  # characters; a shorter secret would mask half of every line
_WORDS = (b"secret", b"passw", b"bearer", b"authorization", b"hf_", b"sk-", b"ghp_")
_KEY = re.compile(rb"(?:api|access|private)[_-]?key")
_TOKEN = re.compile(rb"token(?:(?<=[_a-z]token)|(?<=-token)[ \\='\"]|(?<![#-]token)[\\='\":])")  # no batch line has it
_NAMED_TOKEN = rb"(?:hf|hub|auth|access|api|session|refresh|github|gh|wandb)[_-]?token"
_SECRET_TOKEN = re.compile(_NAMED_TOKEN + rb"|-token[ \\='\"]|(?<![#\w-])token[\\='\": ]")
_SECRET_NAME = (
    rb"[\w-]{0,60}(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|passwd|password|"
    + _NAMED_TOKEN
    + rb")[\w-]{0,40}|(?<![#\w-])token"
)
_ENDS = rb"(?=['\"]?(?:[\s,)\]}&;]|\Z))"
_NONE = rb"(?!(?-i:None|'None'|\"None\"|''|\"\"|'\$\w{1,80}'|\"\$\w{1,80}\")" + _ENDS + rb")"
_NO_SECRET = _NONE + rb"(?!(?-i:True|False|null|true|false|\d{1,8})" + _ENDS + rb"|\xe2\x80\xa6|!secret\b)"
_GAP = rb"(?:[ \t]|\x1b\[[\d;]{0,16}m){0,6}+"
_FLAG = rb"--(?:[\w-]{0,40}-)?(?:api[_-]key|password|secret|token)"
_QUOTE = rb"\\?['\"]"
_NAME = rb"(?:['\"]|\b)(?:" + _SECRET_NAME + rb")(?:" + _QUOTE + rb")?"
_HEADS = (
    # 'key=a value' and '--key=a value': the quote began before the name
    re.compile(
        rb"(?i)(?P<listed>[\[({,]\s?)?+(?<!\\)(?P<quote>['\"])(?:"
        + _FLAG
        + rb"=(?!(?-i:None)(?P=quote)(?:[\s,)\]}:;]|\Z))|(?:"
        + _SECRET_NAME
        + rb")=(?!(?-i:None|True|False|null|true|false|\d{1,8})(?P=quote)(?:[\s,)\]}:;]|\Z)|\xe2\x80\xa6))"
    ),
    # a command line, and environments as a shell writes them
    re.compile(rb"(?i)(?P<shell>)" + _FLAG + rb"(?:=|[ \t]{1,4}+)" + _NONE),
    re.compile(rb"(?P<shell>)\b(?=[A-Z0-9_]{1,100}=)(?i:" + _SECRET_NAME + rb")=" + _NO_SECRET),
    # a command line as a list of arguments
    re.compile(rb"(?i)" + _FLAG + _QUOTE + rb",\s{0,4}+" + _NONE + rb"(?=[bu]?" + _QUOTE + rb")"),
    # key='value', key=value and 'key': 'value' of dumps; "key": "value" of JSON
    re.compile(rb"(?i)" + _NAME + _GAP + rb"=" + _GAP + _NO_SECRET),
    re.compile(rb"(?i)" + _NAME + _GAP + rb":" + _GAP + _NONE + rb"(?=[bu]?" + _QUOTE + rb")"),
    # key: value, where the value is one word and all that follows in its field
    re.compile(rb"(?i)" + _NAME + rb":[ \t]{1,4}+" + _NO_SECRET + rb"(?=[^\s,)\]}]++(?:[,)\]}\r\n]|\Z))"),
    re.compile(rb"(?i)(?P<shell>)\bbearer\s{1,4}+(?=[^\s'\"]\S{3})"),
    re.compile(
        rb"(?i)(?P<shell>)\bauthorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?:(?:basic|token|digest|bearer)\s)?+(?=[^\s'\"]\S{3})"
    ),
)
_YAML = re.compile(  # alone in its line, behind a record's head or a server's name
    rb"(?im)(^(?:[^\r\n'\"]{1,100}?[|\]] )?[ \t]{0,80}(?:- )?(?:" + _SECRET_NAME + rb"):[ \t]{1,4}+)" + _NO_SECRET
    + rb"(?!['\"])[^\r\n]++"
)  # fmt: skip
_BEGIN = re.compile(rb"\\?['\"]")
_ALONE = (
    re.compile(rb"()(?:\bhf_[A-Za-z0-9]{16,200}|\bsk-[A-Za-z0-9_-]{16,200}|\bghp_[A-Za-z0-9]{16,200})"),
    re.compile(rb"(://[^/\s:@]{1,80}:)[^/\s@]{1,200}(?=@)"),
)

_learned: set[bytes] = set()
_known: re.Pattern[bytes] | None = None


def learn(secrets: Iterable[str]) -> None:
    """From now on these values are masked in this process wherever they stand, whatever they look like; also the
    password of a URL and the texts of a JSON object. Learned for good: a line may leave by any thread."""
    global _known
    forms = {form.encode() for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
    if forms - _learned:
        _learned.update(forms)
        _known = re.compile(b"|".join(re.escape(form) for form in sorted(_learned, key=len, reverse=True)))


def _forms(secret: str) -> Iterator[str]:
    """A secret as logs write it: plain, in JSON and Python strings; and what of it is secret by itself."""
    yield from (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1])
    if "'" in secret:
        yield shlex.quote(secret)[1:-1]
    if url := re.match(r"\w+://[^/\s:@]*:([^/\s]+)@", secret):
        yield url[1]
    if secret.startswith(("{", "[")):
        try:
            value = json.loads(secret)
        except ValueError:
            return
        for leaf in _leaves(value):
            yield from _forms(leaf)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


def mask(line: bytes) -> bytes:
    """``line`` with every value that looks like a key, token or password, or was learned, replaced by ``****``."""
    if _known is not None:
        line = _known.sub(MASK, line)
    if not _may_tell(line.lower()):
        return line
    for head in _HEADS:
        line = _hidden(line, head)
    for pattern in (_YAML, *_ALONE):
        line = pattern.sub(rb"\1" + MASK, line)
    return line


def _may_tell(line: bytes) -> bool:
    """Whether a line, in lower case, is worth a closer look: nearly none is, so this must be cheap."""
    return (
        any(word in line for word in _WORDS)
        or (b"key" in line and _KEY.search(line) is not None)
        or (b"token" in line and _TOKEN.search(line) is not None and _SECRET_TOKEN.search(line) is not None)
        or (b"://" in line and b"@" in line)
    )


def _hidden(line: bytes, head: re.Pattern[bytes]) -> bytes:
    """``line`` without the values behind ``head``; the quotes of a value that is one quoted piece stay."""
    kept: list[bytes] = []
    done = 0
    while found := head.search(line, done):
        named, at = found.groupdict(), found.end()
        quote = named.get("quote", b"")
        if quote:
            end = end_of_quoted(line, at, quote, shell=named["listed"] is None)
        else:
            end = end_of_value(line, at, shell="shell" in named)
        kept += line[done:at], _masked_value(line[at:end], quote)
        done = end
    return b"".join((*kept, line[done:])) if kept else line


def _masked_value(value: bytes, quote: bytes) -> bytes:
    """The mask, in the quotes that the value has; ``quote``: what it stands in began before it."""
    begin = _BEGIN.match(value) if not quote else None
    before = begin[0] if begin else b""
    end = quote or before
    return before + MASK + (end if len(value) > len(end) and value.endswith(end) else b"") if value else b""


def mask_text(text: str) -> str:
    """``mask`` for text."""
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def mask_words(words: Iterable[str]) -> tuple[str, ...]:
    """``mask_text`` for a command line in its words, each of which is known to be whole."""
    out: list[str] = []
    hides = False
    for word in words:
        name, equals, _ = word.partition("=")
        secret = is_secret_name(name.lstrip("-"))
        if hides and not word.startswith("--"):
            out.append(MASK.decode())
        else:
            out.append(f"{name}={MASK.decode()}" if secret and equals else mask_text(word))
        hides = secret and not equals and word.startswith("--")
    return tuple(out)


def is_secret_name(name: str) -> bool:
    """Whether a flag or variable of this name holds a secret."""
    return re.fullmatch(_SECRET_NAME, name.encode("utf-8", "replace"), re.IGNORECASE) is not None
