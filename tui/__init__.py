"""hcs-tui: launch, watch, relaunch and kill SGLang servers on remote GPU hosts."""

__version__ = "0.1.0"
