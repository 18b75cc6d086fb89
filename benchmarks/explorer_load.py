"""The live page under load: python -m benchmarks.explorer_load [--seconds 60] [--clients 50].

Clients ask for explanations and for decisions under edits as fast as they are answered, wait as
long as a busy answer says, and some go away in the middle. Every answer is compared with what the
library says. Writes benchmarks/explorer_load.json and its section of docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.served import Client, events_in, served
from benchmarks.table import machine
from heedful.runs import read_json, write_json, writing

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "explorer_load.json"
PAGE = ROOT / "docs" / "performance.md"
HEADING = "## The live page under load"
GROWTH = 1.05
"""Memory after the load may be this many times that after warming up."""
TEXTS = tuple(
    " ".join(("good food and bad service was slow but the staff friendly " * 8).split()[:length])
    for length in (4, 9, 17, 30, 60)
)


def models() -> list[Any]:
    """A model with a linear head, and a Transformer."""
    from benchmarks.explaining import random_bert
    from heedful.explorer.texts import ExploredModel
    from heedful.models import example

    return [
        ExploredModel("linear", example(), "leave-one-out", ""),
        ExploredModel("bert", random_bert(2, 64, 4, 128), "occlusion", ""),
    ]


def _server(pipe: Connection) -> None:
    """A process that serves until it is told to end."""
    from heedful.explorer.server import Explorer

    with served(Explorer(models())) as client:
        pipe.send(client.port)
        pipe.recv()


def questions() -> list[tuple[str, dict[str, Any], Any]]:
    """Address, question and right answer: the first event of an explanation, or a decision."""
    from heedful.explorer.texts import TextAsked, WordEdit, edited, explanation_steps
    from heedful.runs import plain

    asked = []
    for number, model in enumerate(models()):
        for text in TEXTS:
            first = plain(explanation_steps(model, TextAsked(text))[0].compute())
            asked.append(("/api/explain", {"text": text, "model": number}, first))
            edit = {"text": text, "model": number, "erased": [0, 2]}
            right = plain(edited(model, TextAsked(text), WordEdit((0, 2))))
            asked.append(("/api/decide", edit, right))
    return asked


def is_right(path: str, told: bytes, wanted: Any) -> bool:
    """Whether an answer is the library's, to the digits that are sent."""
    if path == "/api/decide":
        return _same(json.loads(told), wanted)
    events = events_in(told)
    is_whole = events[-1] == {"done": True} and len(events) == events[0]["steps"] + 1
    return is_whole and _same(events[0], wanted)


def _same(found: Any, wanted: Any) -> bool:
    """Equal, numbers to seven digits: sums in float32 move with the machine's threads."""
    if isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_same(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    if isinstance(wanted, float):
        return abs(found - wanted) <= 1e-6 * max(abs(wanted), 1e-3)
    return bool(found == wanted)


def load(seconds: float, clients: int, warm_up: float) -> dict[str, Any]:
    """What came of it: answers by kind, milliseconds by percentile, memory before and after."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_server, args=(theirs,))
    process.start()
    client, asked = Client(ours.recv()), questions()
    _hammer(client, asked, clients, warm_up)
    time.sleep(1)
    before = _resident(process.pid)
    counted, times, killed = _hammer(client, asked, clients, seconds)
    time.sleep(1)
    after = _resident(process.pid)
    is_well = all(is_right(path, client.ask(path, body)[2], right) for path, body, right in asked)
    ours.send("end")
    process.join(20)
    return {
        "clients": clients, "seconds": seconds, "answers": dict(counted), "killed": killed,
        "is_well": is_well, "memory_before_mb": before / 2**20, "memory_after_mb": after / 2**20,
        "growth": after / before,
        "milliseconds": {
            kind: dict(zip(("p50", "p90", "p99"), np.percentile(found, (50, 90, 99)), strict=True))
            for kind, found in times.items() if found
        },
    }  # fmt: skip


def _hammer(
    client: Client, asked: list[tuple[str, dict[str, Any], Any]], clients: int, seconds: float
) -> tuple[Counter[str], dict[str, list[float]], int]:
    """Counts and milliseconds of answers by kind, and how many clients went away."""
    end, lock = time.monotonic() + seconds, threading.Lock()
    counted: Counter[str] = Counter()
    times: dict[str, list[float]] = {"explained": [], "decided": [], "busy": []}
    killed = 0

    def one(seed: int) -> None:
        nonlocal killed
        drawn = random.Random(seed)
        while time.monotonic() < end:
            path, body, right = drawn.choice(asked)
            if drawn.random() < 0.05:
                _vanish(client.port, path, body)
                with lock:
                    killed += 1
                continue
            started = time.perf_counter()
            try:
                status, headers, told = client.ask(path, body)
            except OSError as error:
                status, headers, told = 0, {}, str(error).encode()
            took = 1e3 * (time.perf_counter() - started)
            if status == 503 and "retry-after" in headers:
                kind = "busy"
            elif status == 200 and is_right(path, told, right):
                kind = "explained" if path == "/api/explain" else "decided"
            else:
                kind = "wrong"
                print(status, path, told[:200], file=sys.stderr)
            with lock:
                counted[kind] += 1
                times.setdefault(kind, []).append(took)
            if kind == "busy":
                time.sleep(float(headers["retry-after"]) * drawn.uniform(0.5, 1))

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counted, times, killed


def _vanish(port: int, path: str, body: dict[str, Any]) -> None:
    """A client that asks and is gone before it is answered."""
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(f"{head}content-length: {len(sent)}\r\n\r\n".encode() + sent)


def _resident(process: int | None) -> int:
    """Bytes of memory that a process holds; Linux."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def is_kept(found: Mapping[str, Any]) -> bool:
    """Whether every answer was right or busy, memory stayed and the server is well."""
    return not found["answers"].get("wrong") and found["growth"] <= GROWTH and found["is_well"]


def section() -> str:
    """The section of docs/performance.md; nothing where no load was measured."""
    if not RESULTS.is_file():
        return ""
    found = read_json(RESULTS)
    answers, rows = found["answers"], found["milliseconds"]
    table = "\n".join(
        f"| {kind} | {answers[kind]:,} | "
        + " | ".join(f"{ms:,.0f} ms" for ms in row.values())
        + " |"
        for kind, row in rows.items()
    )
    return f"""
{HEADING}

Written by `make explore-load`: {found["clients"]} clients on one machine with the server ask for
{found["seconds"]:.0f} seconds, as fast as they are answered, for explanations of texts of 4 to 60
words by every method and for decisions under edits, of a model with a linear head and of a small
Transformer; after a busy answer they wait as it says. {found["machine"]}; {found["date"]}.

| answer | count | half within | 90 % within | 99 % within |
|---|---|---|---|---|
{table}

Answers that were neither right nor busy: {answers.get("wrong", 0)}. Clients that went away before
they were answered: {found["killed"]:,}; the server answered every question rightly afterwards:
{"yes" if found["is_well"] else "NO"}. Memory {found["memory_before_mb"]:.0f} MB after warming up,
{found["memory_after_mb"]:.0f} MB after the load, {found["growth"]:.3f} times (limit {GROWTH:g}).
"""


def main() -> int:
    """Exit status 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explorer_load")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--warm-up", type=float, default=20)
    options = parser.parse_args()
    found = load(options.seconds, options.clients, options.warm_up)
    measured = machine()
    write_json(RESULTS, found | {name: measured[name] for name in ("machine", "commit", "date")})
    said = section()
    with writing(PAGE) as path:
        before = PAGE.read_text("utf-8").partition(HEADING)[0].rstrip()
        path.write_text(f"{before}\n{said}", encoding="utf-8")
    print(said)
    return int(not is_kept(found))


if __name__ == "__main__":
    sys.exit(main())
