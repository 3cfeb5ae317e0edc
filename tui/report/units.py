"""Times and sizes as people and scripts read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

GIB_IN_GB = 1024**3 / 1e9


def span(seconds: float) -> str:
    """A duration in at most six characters: ``7.2s``, ``48s``, ``2m41s``, ``1h02``, ``3d04h``."""
    if seconds < 0:
        return "0s"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def iso(at: float, utc_offset: int | None) -> str:
    """Unix seconds → ISO 8601 in the zone that is ``utc_offset`` seconds east of UTC (``None``: this machine's)."""
    if utc_offset is None:
        return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
    return datetime.fromtimestamp(at, timezone(timedelta(seconds=utc_offset))).isoformat(timespec="seconds")


def iso_local(at_local: float, utc_offset: int | None) -> str:
    """Seconds of a host's wall clock → ISO 8601, with its offset where that is known."""
    wall = datetime.fromtimestamp(at_local, UTC)
    zone = None if utc_offset is None else timezone(timedelta(seconds=utc_offset))
    return wall.replace(tzinfo=zone).isoformat(timespec="milliseconds" if wall.microsecond else "seconds")


def number(value: float | None) -> str:
    """A rate or a size in few digits: ``0.18``, ``4.51``, ``62.1``, ``409``, ``12 400``; empty for ``None``."""
    if value is None:
        return ""
    if abs(value) < 10:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:.1f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:,.0f}".replace(",", " ")


def percent(ratio: float | None) -> str:
    """A ratio as a whole percentage; empty for ``None``."""
    return "" if ratio is None else f"{ratio:.0%}"
