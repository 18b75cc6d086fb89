"""What somebody else's files and folders may not be: pipes that never end, links that lead out."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.cluster.sweep import read_grid
from heedful.corpora.files import read_file
from heedful.corpora.lexicon import read_ratings
from heedful.corpora.vectors import load_vectors
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError
from heedful.jobs.decider import load
from heedful.jobs.settings import read_settings
from heedful.models.saved import read_tensors
from heedful.runs import RunFolder, held, read_json
from heedful.runs.entries import refuse_pipe, refuse_pipes

READERS: dict[str, Callable[[Path], object]] = {
    "texts.csv": read_file,
    "texts.csv.gz": read_file,
    "texts.parquet": read_file,
    "run.json": read_json,
    "settings.toml": read_settings,
    "grid.toml": read_grid,
    "model.safetensors": read_tensors,
    "ratings.csv": read_ratings,
    "vectors.txt": lambda path: load_vectors(path, Vocabulary((*SPECIALS, "good"))),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_before_it_is_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="is a pipe, socket or device; expected a plain file"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("place", ["pipe", "findings/pipe", "model/pipe"])
def test_a_run_or_model_with_a_pipe_in_it_is_not_opened(place: str, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {"kind": "train"})
    (run.path / place).parent.mkdir(exist_ok=True)
    os.mkfifo(run.path / place)
    for opened in (RunFolder.open, load):
        with pytest.raises(InputError, match=r"pipe is a pipe, socket or device"):
            opened(run.path)


def test_devices_are_refused_and_plain_files_folders_and_nothing_are_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="/dev/null is a pipe, socket or device"):
        refuse_pipe("/dev/null")
    (tmp_path / "file").write_text("")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    for place in (tmp_path, tmp_path / "file", tmp_path / "nowhere", tmp_path / "lost"):
        refuse_pipe(place)
    refuse_pipes(tmp_path)


def test_a_link_is_refused_however_deep_it_lies(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {"kind": "train"})
    outside = tmp_path / "mine"
    outside.mkdir()
    shard = run.path / "shards" / "000000-part"
    shard.mkdir(parents=True)
    (shard / "found").symlink_to(outside)
    with pytest.raises(InputError, match="is a link, and heedful follows none"), held(run.path):
        pass


def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bytes in its name that are no UTF-8"):
        RunFolder.create(tmp_path / os.fsdecode(b"o\xff"), {"kind": "train"})
    assert not list(tmp_path.iterdir())
