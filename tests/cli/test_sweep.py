"""What is typed for shards, sweeps and clusters."""

from pathlib import Path

import pytest

from heedful.cli import app
from heedful.errors import InputError


def typed(*words: str) -> None:
    app(list(words), standalone_mode=False)


def test_a_recipe_is_not_trained_on_a_pattern_of_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\+additive has to be trained first"):
        typed("audit", "none+additive", "--data", f"{tmp_path}/*.parquet")


def test_a_cluster_audits_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--on is for an audit of files"):
        typed("audit", "none+additive", "--corpus", "planted", "--on", "ray")


@pytest.mark.parametrize("command", [("reproduce", "quicklook"), ("calibrate",)])
def test_an_engine_that_nobody_knows_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(InputError, match="--on is ray or ray://HOST:PORT, got 'spark'"):
        typed(*command, "--out", str(tmp_path / "out"), "--on", "spark")


def test_a_grid_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml does not exist"):
        typed("sweep", str(tmp_path / "none.toml"))
