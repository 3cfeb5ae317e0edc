"""The head of the blob: imports the agent from memory. ``SOURCES`` and ``CONFIG`` are put before it by the sender."""

import sys
from importlib.machinery import ModuleSpec
from typing import Any

PACKAGE = "hcs_agent"


class MemoryImporter:
    """Finds the agent's modules in ``SOURCES``."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        loader: Any = self
        if name == PACKAGE:
            return ModuleSpec(name, loader, is_package=True)
        head, _, tail = name.rpartition(".")
        return ModuleSpec(name, loader) if head == PACKAGE and tail in SOURCES else None  # type: ignore[name-defined]  # noqa: F821

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        name = module.__name__.rpartition(".")[2] if module.__name__ != PACKAGE else "__init__"
        text = SOURCES[name]  # type: ignore[name-defined]  # noqa: F821
        exec(compile(text, "agent/" + name + ".py", "exec", dont_inherit=True), module.__dict__)


sys.meta_path.insert(0, MemoryImporter())

from hcs_agent import main  # type: ignore[import-not-found]  # noqa: E402

main.start(SOURCES, CONFIG, sys.argv[1:])  # type: ignore[name-defined]  # noqa: F821
