"""The one table of what a user can do. It feeds the key bindings, footer, palette, help screen and README."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Act:
    """An action of the app, done by its method ``action_<id>``.

    ``keys`` are Textual's names, the first one shown as ``key``. ``foot``: it stands in the footer, the
    smallest numbers longest as the terminal narrows. ``changes``: it launches or ends something: off in read-only.
    ``live``: it asks a host or a server, which stands behind no saved log.
    """

    id: str
    keys: str
    key: str
    name: str
    help: str
    foot: int = 0
    changes: bool = False
    live: bool = False
    group: str = "Servers"

    @property
    def palette(self) -> bool:
        """Whether it makes sense in the palette."""
        return self.id not in _KEYS_ONLY


FIXED = frozenset({"command_palette", "next_panel", "jump"})
"""Actions whose keys Textual binds, or that take the pressed key: they stay where they are."""
_ON_BOARD = frozenset(
    {"sort", "by_host", "only", "zoom", "wall", "merged", "back", "smoke_test", "discover", "forward"}
)
_KEYS_ONLY = FIXED | {"up", "down", "back"}

ACTS: tuple[Act, ...] = (
    Act("launch", "l", "l", "launch", "Launch the selected server", foot=3, changes=True),
    Act(
        "relaunch",
        "R",
        "R",
        "relaunch",
        "End the selected server, prove it gone, launch it again",
        foot=5,
        changes=True,
    ),
    Act(
        "kill",
        "K",
        "K",
        "kill",
        "End the selected server and prove that nothing of it is left",
        foot=4,
        changes=True,
    ),
    Act(
        "smoke_test",
        "t",
        "t",
        "test",
        "Smoke test: one short completion on the selected ready server",
        foot=11,
        live=True,
    ),
    Act(
        "edit",
        "E",
        "E",
        "edit",
        "Relaunch the selected server with other flags: a form that shows the difference",
        foot=15,
        changes=True,
    ),
    Act("bulk", "B", "B", "all", "Launch, relaunch or end all servers that the board lists", changes=True),
    Act(
        "history",
        "H",
        "H",
        "runs",
        "Earlier runs of the selected server: outcomes, logs, comparison",
        foot=16,
        live=True,
    ),
    Act("copy_command", "y", "y", "copy", "Copy the command line of the selected server", live=True),
    Act("alerts", "A", "A", "alerts", "What happened in this session: ready, failed, stalled, out of reach, slow"),
    Act("reconnect", "r", "r", "reconnect", "Try the selected server's host again now", live=True),
    Act(
        "discover",
        "d",
        "d",
        "discover",
        "Look for servers that somebody else started on the selected server's host",
        live=True,
    ),
    Act(
        "forward",
        "F",
        "F",
        "forward",
        "The selected server's port on this machine's loopback, and away again",
        live=True,
    ),
    Act("up", "up,k", "↑ k", "up", "Select the server above"),
    Act("down", "down,j", "↓ j", "down", "Select the server below"),
    Act("jump", "1,2,3,4,5,6,7,8,9", "1–9", "jump", "Select a server by its place"),
    Act("sort", "s", "s", "sort", "Order of the board: profile, state, tok/s, queue, usage"),
    Act("by_host", "b", "b", "by host", "The servers of a host together, and back"),
    Act("only", "o", "o", "only", "List only the servers that match what you type: name, host, state, model", foot=13),
    Act(
        "search",
        "slash",
        "/",
        "search",
        "Search the log; n and N go to the next and previous line. Ctrl+R regex, Alt+C case",
        foot=6,
        group="Log",
    ),
    Act("filter", "f", "f", "filter", "Next filter: all, caches, stages, problems, batches", foot=7, group="Log"),
    Act("include", "i", "i", "only lines", "Show only the log's lines that hold what you type", group="Log"),
    Act("exclude", "x", "x", "without", "Hide the log's lines that hold what you type", group="Log"),
    Act("next_problem", "right_square_bracket", "]", "problem", "The log's next warning or error", group="Log"),
    Act("last_problem", "left_square_bracket", "[", "back", "The warning or error before", group="Log"),
    Act("cause", "C", "C", "cause", "The line of the log that says why the selected server failed", group="Log"),
    Act("stages", "S", "S", "stage", "A stage of the start-up in the log, from a list", group="Log"),
    Act("probes", "p", "p", "probes", "Show or hide health probes in the log", group="Log"),
    Act("wrap", "W", "W", "wrap", "Wrap long lines, or cut them (← → move)", group="Log"),
    Act("times", "T", "T", "times", "Time stamps of the log: without date, in full, none", group="Log"),
    Act(
        "pick",
        "v",
        "v",
        "pick",
        "Pick a line of the log, again: several (Shift+↑ ↓, or clicks), again: none",
        group="Log",
    ),
    Act("copy_lines", "Y", "Y", "copy lines", "Copy the picked lines", group="Log"),
    Act("save_log", "ctrl+s", "^s", "save", "Save the picked lines, or the log, to a new file", group="Log"),
    Act("log_page_up", "pageup", "PgUp", "page up", "A page up in the log; it stays there", group="Log"),
    Act("log_page_down", "pagedown", "PgDn", "page down", "A page down in the log", group="Log"),
    Act("log_home", "home", "Home", "first line", "The log's first line", group="Log"),
    Act("log_end", "end", "End", "follow", "The log's end, following it", group="Log"),
    Act("zoom", "z", "z", "zoom", "The focused panel alone, and back", foot=9, group="View"),
    Act("wall", "w", "w", "wall", "The logs of all servers at once, and back", foot=8, group="View"),
    Act("merged", "m", "m", "merged", "The logs of all listed servers in one, by time", foot=17, group="View"),
    Act("charts", "c", "c", "charts", "Throughput, queue and cache usage over time, and back", foot=10, group="View"),
    Act("hosts", "h", "h", "hosts", "Memory, GPUs and disks of all hosts, and back", foot=14, group="View"),
    Act("next_panel", "tab", "Tab", "next panel", "Focus the next panel (Shift+Tab: the one before)", group="View"),
    Act("help", "question_mark", "?", "help", "This list", foot=2, group="View"),
    Act(
        "command_palette",
        "ctrl+p",
        "^p",
        "palette",
        "Everything by name, also servers and themes",
        foot=12,
        group="View",
    ),
    Act("back", "escape", "Esc", "back", "Back to the board", group="View"),
    Act("suspend", "ctrl+z", "^z", "suspend", "Back to the shell; `fg` returns here", group="View"),
    Act("quit", "q,ctrl+q", "q", "quit", "Leave. Servers run on", foot=1, group="View"),
)
BY_ID = {act.id: act for act in ACTS}
CHANGES = frozenset(act.id for act in ACTS if act.changes)


def of_board(act: Act) -> bool:
    """Whether it is off while another view or a dialog is shown: what it is about, or would ask, is not seen there."""
    return act.changes or act.group == "Log" or act.id in _ON_BOARD


def bindings() -> list[Binding]:
    """The app's bindings. Jumps take the pressed digit; Textual binds the palette and Tab by itself."""
    made = [Binding(act.keys, act.id, act.name, show=False, id=act.id) for act in ACTS if act.id not in FIXED]
    return made + [Binding(digit, f"jump({digit})", show=False) for digit in "123456789"]


def possible(acts: Sequence[Act], *, read_only: bool, saved: bool = False) -> list[Act]:
    """Those that can do anything, in order. ``saved``: only saved logs are shown."""
    return [act for act in acts if not (read_only and act.changes) and not (saved and act.live)]


def footer_keys(acts: Sequence[Act] = ACTS, *, read_only: bool, saved: bool = False) -> list[Act]:
    """The actions of the footer, in order."""
    return [act for act in possible(acts, read_only=read_only, saved=saved) if act.foot]


def key_table() -> str:
    """The keys as a Markdown table, for the README."""
    rows = [f"| `{act.key}` | {act.help} |" for act in ACTS]
    return "\n".join(["| key | what it does |", "|---|---|", *rows, ""])
