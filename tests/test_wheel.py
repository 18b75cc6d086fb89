"""The wheel holds everything that the package needs at run time."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_alone_audits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    build_wheel(str(tmp_path))  # what `python -m build` asks of the backend
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(site)
    assert "heedful/py.typed" in names
    assert "heedful/report/templates/page.html.j2" in names
    assert not any(name.startswith(("tests/", "docs/")) for name in names)
    # Only the unpacked wheel is on the path; the repository is not.
    environment = os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    code = "import heedful; print(heedful.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert str(site) in where.stdout
    command = [sys.executable, "-m", "heedful", "audit", "none+additive", "--quick"]
    command += ["--documents", "40"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "May attention be shown as the reason?" in done.stdout
    assert list(tmp_path.glob("runs/*/report.html"))
