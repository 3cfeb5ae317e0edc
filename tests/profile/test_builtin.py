"""The profiles that come with the program: right, and found in a checkout as in a wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from tui.profile.builtin import available_profiles, builtin_profiles, find_profile
from tui.profile.load import load, loads
from tui.profile.problem import ProfileError
from tui.profile.schema import profile_schema

ROOT = Path(__file__).parents[2]
NAMES = ["hicache", "hicache-4gpu", "mtp", "plain"]


def test_they_load_without_a_warning() -> None:
    assert [path.stem for path in builtin_profiles()] == NAMES
    for path in builtin_profiles():
        profile = load(path)
        assert profile.name == path.stem
        assert profile.warnings == ()
        assert {server.host.ssh for server in profile.servers} == {"gpu-host"}


def test_the_first_users_configurations() -> None:
    plain, mtp, hicache = (load(find_profile(name)).servers[0] for name in ("plain", "mtp", "hicache"))
    assert "enable-hierarchical-cache" not in {**plain.args, **mtp.args}
    assert mtp.args["speculative-algorithm"] == "EAGLE"
    assert (hicache.args["enable-hierarchical-cache"], hicache.args["hicache-size"]) == (True, 150)
    assert (hicache.cwd, hicache.log) == ("/workspace/dflash", "/workspace/dflash/logs/sglang_gpu0.log")
    four = load(find_profile("hicache-4gpu")).servers
    assert [(one.name, one.port, one.gpus) for one in four] == [(f"gpu{n}", 30000 + n, (n,)) for n in range(4)]


def test_the_schema_agrees_with_the_loader() -> None:
    schema = profile_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for path in builtin_profiles():
        jsonschema.validate(YAML(typ="safe").load(path), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"servers": {"a": {"prt": 1}}}, schema)


ARGS = "args: {model-path: x}"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (f"servers: {{a: {{host: local, env: , {ARGS}}}}}", True),
        (f"hosts:\ndefaults:\nservers: {{a: {{host: local, {ARGS}}}}}", True),
        (f"hosts: {{b: }}\ndefaults: {{{ARGS}}}\nservers: {{a: }}", True),
        (f"hosts: {{b/c: }}\nservers: {{a: {{{ARGS}}}}}", False),
        ("servers: {}", False),
        ("servers:", False),
        *(
            (f"servers: {{a: {{host: local, {key}, {ARGS}}}}}", right)
            for key, right in {
                "port: 1": True, "port: 30000+": True, "port: 0": False, "port: 65536": False, "port: '1'": False,
                "gpus: 0": True, "gpus: [0, 1023]": True, "gpus: [0, 0]": False, "gpus: [-1]": False,
                "gpus: [1024]": False,
                "stop_grace: 0": True, "stop_grace: -1": False, "stall_after: 0": False, "stall_after: 1h": True,
            }.items()
        ),
    ],
)  # fmt: skip
def test_the_schema_takes_what_the_program_takes(text: str, right: bool) -> None:
    schema = jsonschema.Draft202012Validator(profile_schema())
    assert schema.is_valid(YAML(typ="safe").load(text)) is right
    try:
        loads(text, "p.yaml")
    except ProfileError:
        assert not right
    else:
        assert right


def test_own_profiles_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "profiles").mkdir()
    (tmp_path / "config/hcs-tui").mkdir(parents=True)
    (tmp_path / "profiles/plain.yaml").touch()
    (tmp_path / "config/hcs-tui/mine.yml").touch()
    assert [path.stem for path in available_profiles()] == ["plain", "mine", *NAMES]
    assert find_profile("plain") == Path("profiles/plain.yaml")
    assert find_profile("mine").name == "mine.yml"
    assert find_profile("nowhere.yaml") == Path("nowhere.yaml")
    with pytest.raises(ProfileError, match="did you mean 'hicache'"):
        find_profile("hicach")


def test_the_wheel_brings_them_along(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = "from tui.profile.builtin import builtin_profiles; print(*builtin_profiles(), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(site)}, check=True, capture_output=True
    )
    paths = [Path(line) for line in found.stdout.decode().split()]
    assert paths == [site / "tui/_profiles" / f"{name}.yaml" for name in NAMES]
    assert (site / "tui/report/fonts/HcsSymbols.ttf").exists()
