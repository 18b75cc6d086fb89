"""Small models and a running server for the tests of the live page."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

from heedful.corpora.planted import planted
from heedful.explorer.documents import OfferedDocuments, offered
from heedful.explorer.safety import Door
from heedful.explorer.server import Explorer, application
from heedful.explorer.serving import listen, server_of
from heedful.explorer.texts import ExploredModel
from heedful.models import example
from tests import tiny_transformers as tiny


def linear(name: str = "linear") -> ExploredModel:
    """A model with a linear head that knows a few words."""
    return ExploredModel(name, example(), "leave-one-out", "It was measured.")


def layered(name: str = "layered") -> ExploredModel:
    """A Transformer of two layers."""
    return ExploredModel(name, tiny.reader("bert"), "occlusion", "")


def documents(count: int = 30) -> OfferedDocuments:
    return offered(planted(2, "short", 0, {"test": count}))


class Client(NamedTuple):
    """Somebody who asks a server on this machine."""

    port: int

    def ask(
        self, path: str, body: Any = None, method: str = "", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one answer; `body` is sent as JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        given = {} if sent is None else {"content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if sent is None else "POST"), path, sent, given)
        answer = connection.getresponse()
        found = answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def json(self, path: str, body: Any = None) -> Any:
        return json.loads(self.ask(path, body)[2])

    def events(self, body: Any) -> list[dict[str, Any]]:
        """All that is told of a text."""
        _, _, told = self.ask("/api/explain", body)
        return events_in(told)


def events_in(told: bytes) -> list[dict[str, Any]]:
    parts = told.decode().split("\n\n")
    return [json.loads(part[6:]) for part in parts if part.startswith("data: ")]


@contextmanager
def served(explorer: Explorer, door: Door = Door()) -> Iterator[Client]:
    """Lends a running server."""
    listening = listen("127.0.0.1", 0)
    server = server_of(application(explorer, door))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Client(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
