"""Numbers as people read them."""

from __future__ import annotations

from tui.report.units import span as span

NARROW_SPACE = " "


def count(value: float) -> str:
    """A whole number with its thousands apart: 147 456."""
    return f"{round(value):,}".replace(",", NARROW_SPACE)


def short(value: float) -> str:
    """A number in at most four characters: 811, 2.9k, 70M."""
    for unit, size in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)):
        scaled = value / size
        if scaled < 999.5:
            return f"{scaled:.0f}{unit}" if scaled >= 9.95 or not unit else f"{scaled:.1f}{unit}"
    return f"{value / 1e12:.0f}T"


def rate(value: float) -> str:
    """Tokens per second: one decimal below 100."""
    if value < 99.95:
        return f"{value:.1f}"
    return count(value) if value < 99_999.5 else short(value)


def brief(seconds: float) -> str:
    """A duration in at most five characters: 4.2s, 38s, 9m59s, 59m, 1h02, 3d04h, 30d."""
    told = span(seconds)
    if len(told) <= 5:
        return told
    return f"{seconds / 60:.0f}m" if seconds < 3600 else f"{seconds / 86400:.0f}d"


def gigabytes(value: float, unit: str = "GB") -> str:
    """A size with two decimals below 1000, none above."""
    return f"{value:.2f} {unit}" if value < 999.995 else f"{value:,.0f} {unit}".replace(",", NARROW_SPACE)


def sizes(gb: float) -> tuple[str, ...]:
    """A size in decimal GB, from the most exact way of writing it to the shortest."""
    return gigabytes(gb), f"{gb:.0f} GB", f"{gb / 1e3:.0f} TB", f"{gb / 1e3:.0f}T"


def percent(ratio: float) -> str:
    return f"{round(ratio * 100)}%"
