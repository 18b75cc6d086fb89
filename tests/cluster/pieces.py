"""Workload for tests of the engine: each notes that it was done, one is skipped, one is a bug."""

import os
import time
from pathlib import Path

from heedful.reproduction.results import Skipped


def doing(task):
    folder = Path(task["folder"])
    note(folder / "opened.txt", os.getpid())

    def do(name):
        note(folder / "order.txt", name)
        if name == "absent":
            raise Skipped("no such corpus")
        if name == "bug":
            raise ZeroDivisionError("a bug")
        if name.startswith("card"):
            began = time.time()
            time.sleep(1)
            note(folder / "cards.txt", os.environ["CUDA_VISIBLE_DEVICES"], began, time.time())

    return do


def note(path, *words):
    with path.open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")
