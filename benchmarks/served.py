"""The live page's server on this machine, and a client that asks it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

from heedful.explorer.safety import Door
from heedful.explorer.server import Explorer, application, listen, server_of

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


class Client(NamedTuple):
    """Somebody who asks a server on this machine."""

    port: int

    def ask(self, path: str, body: Any = None, method: str = "", **headers: str) -> Answer:
        """One answer; a `body` is sent as JSON."""
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        given = {} if sent is None else {"content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            connection.request(method or ("GET" if sent is None else "POST"), path, sent, given)
            answer = connection.getresponse()
            return answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read()

    def json(self, path: str, body: Any = None) -> Any:
        """What an answer says."""
        return json.loads(self.ask(path, body)[2])

    def events(self, body: Any) -> list[dict[str, Any]]:
        """All that is told of a text."""
        return events_in(self.ask("/api/explain", body)[2])

    def first(self, body: Any, name: str) -> float:
        """Seconds until an event with that name is told of a text; then the client goes away."""
        started = time.perf_counter()
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            kind = {"content-type": "application/json"}
            connection.request("POST", "/api/explain", json.dumps(body), kind)
            answer = connection.getresponse()
            while name not in (json.loads(_data(answer.readline()) or b"{}")):
                pass
        return time.perf_counter() - started


def _data(line: bytes) -> bytes:
    if not line:
        raise RuntimeError("The server ended its answer before that.")
    return line[6:] if line.startswith(b"data: ") else b""


def events_in(told: bytes) -> list[dict[str, Any]]:
    """The events of a whole answer."""
    return [json.loads(found) for line in told.splitlines() if line and (found := _data(line))]


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
