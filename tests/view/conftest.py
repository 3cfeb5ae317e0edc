from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import tzset

import pytest

from tests.view import sources


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks on the screen show UTC, and no setting of this machine changes the picture."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        patch.delenv("NO_COLOR", raising=False)
        tzset()
        yield
    tzset()


@pytest.fixture
def source(tmp_path: Path) -> sources.FixedSource:
    return sources.fleet(tmp_path)
