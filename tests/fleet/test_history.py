"""Stage times of earlier runs survive a session, and a broken file does no harm."""

from __future__ import annotations

from pathlib import Path

from tui.fleet.history import StageHistory

STAGES = (("loading_weights", 21.4), ("host_cache", 161.0))


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    history = StageHistory(tmp_path / "deep" / "gpu0.json")
    assert history.load() == ()
    history.save("run1", STAGES)
    assert history.load() == STAGES
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["gpu0.json"]


def test_garbage_is_no_history(tmp_path: Path) -> None:
    for garbage in (b"", b"{", b"[]", b'{"stages": 3}', b'{"stages": [["a", "b"]]}', b"\xff\xfe"):
        path = tmp_path / "gpu0.json"
        path.write_bytes(garbage)
        assert StageHistory(path).load() == ()


def test_a_folder_that_cannot_be_made_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    StageHistory(tmp_path / "file" / "gpu0.json").save("run1", STAGES)
    assert StageHistory(tmp_path / "file" / "gpu0.json").load() == ()
