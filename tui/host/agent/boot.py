"""The head of the blob: imports the agent from memory. The bootstrap that runs it has stdin open as ``b``, where one
line of JSON follows: the agent's modules by name, and what the sender wants of it."""

from __future__ import annotations

import json
import marshal
import os
import sys
from _frozen_importlib import ModuleSpec  # importlib.machinery has it too, at a price

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PACKAGE = "hcs_agent"
SOURCES, CONFIG = json.loads(b.readline())  # type: ignore[name-defined]  # noqa: F821  # the bootstrap's


def compiled(sources: Any) -> Any:
    """The code of every module, marshalled. A child compiles them: the memory that takes is not given back, and would
    be a tenth of what the agent has for as long as it lives."""
    read, write = os.pipe()
    if os.fork() == 0:
        codes = {
            name: marshal.dumps(compile(text, "agent/" + name + ".py", "exec", dont_inherit=True, optimize=2))
            for name, text in sources.items()
        }
        with open(write, "wb") as file:
            marshal.dump(codes, file)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        data = file.read()
    os.wait()
    if not data:
        os._exit(1)  # the child has said why
    return marshal.loads(data)


class MemoryImporter:
    """Finds the agent's modules in ``SOURCES``."""

    def __init__(self) -> None:
        self._codes = compiled(SOURCES)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        loader: Any = self
        if name == PACKAGE:
            return ModuleSpec(name, loader, is_package=True)
        head, _, tail = name.rpartition(".")
        return ModuleSpec(name, loader) if head == PACKAGE and tail in self._codes else None

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        name = module.__name__.rpartition(".")[2] if module.__name__ != PACKAGE else "__init__"
        exec(marshal.loads(self._codes.pop(name)), module.__dict__)


sys.meta_path.insert(0, MemoryImporter())

from hcs_agent import main  # type: ignore[import-not-found]  # noqa: E402  # there by the importer above

main.start(SOURCES, CONFIG, sys.argv[1:])
