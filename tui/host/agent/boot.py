"""The head of the blob: imports the agent from memory. ``SOURCES`` and ``CONFIG`` are put before it by the sender."""

import sys
from importlib.machinery import ModuleSpec

PACKAGE = "hcs_agent"


class MemoryImporter:
    """Finds the agent's modules in ``SOURCES``."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]  # importlib calls it
        if name == PACKAGE:
            return ModuleSpec(name, self, is_package=True)
        head, _, tail = name.rpartition(".")
        return ModuleSpec(name, self) if head == PACKAGE and tail in SOURCES else None  # type: ignore[name-defined]  # noqa: F821

    def create_module(self, spec):  # type: ignore[no-untyped-def]  # importlib calls it
        return None

    def exec_module(self, module):  # type: ignore[no-untyped-def]  # importlib calls it
        name = module.__name__.rpartition(".")[2] if module.__name__ != PACKAGE else "__init__"
        text = SOURCES[name]  # type: ignore[name-defined]  # noqa: F821
        exec(compile(text, "agent/" + name + ".py", "exec", dont_inherit=True), module.__dict__)


sys.meta_path.insert(0, MemoryImporter())

from hcs_agent import main  # type: ignore[import-not-found]  # noqa: E402

main.start(SOURCES, CONFIG, sys.argv[1:])  # type: ignore[name-defined]  # noqa: F821
