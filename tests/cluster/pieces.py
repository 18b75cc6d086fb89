"""Workload for tests of the engine: each notes that it was done, one is skipped, one is a bug."""

from pathlib import Path

from heedful.reproduction.results import Skipped


def doing(task):
    folder = Path(task["folder"])

    def do(name):
        with (folder / "order.txt").open("a") as file:
            file.write(f"{name}\n")
        if name == "absent":
            raise Skipped("no such corpus")
        if name == "bug":
            raise ZeroDivisionError("a bug")

    return do
