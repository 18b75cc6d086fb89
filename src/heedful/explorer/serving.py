"""The server as a process: where it listens, what the terminal says, how it ends."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable, Iterable

import uvicorn

from heedful.errors import InputError
from heedful.explorer.safety import Door, Guard

MOST_CONNECTIONS = 256
"""Connections at once; the work behind them has a limit of its own."""


def serve(
    app: Guard,
    door: Door,
    port: int,
    *,
    opens_browser: bool,
    say: Callable[[Iterable[str]], None],
) -> None:
    """Serves until it is stopped by Ctrl-C."""
    listening = listen(door.host, port)
    address = address_of(door, listening)
    shown = [f"The page: {address}", "Ctrl-C ends it."]
    if door.is_open:
        shown.insert(1, "Whoever has this address can use the models; it is shown only here.")
    say(shown)
    if opens_browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server_of(app).run(sockets=[listening])


def server_of(app: Guard) -> uvicorn.Server:
    """The server, quiet and bounded."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=2,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; a port that is taken is one sentence."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        raise InputError(
            f"Cannot listen at {host}, port {port} ({error.strerror or error}); choose another "
            "--port, or 0 for any that is free."
        ) from error
    found.listen(128)
    return found


def address_of(door: Door, listening: socket.socket) -> str:
    """The address of the page, with the token where there is one."""
    port = listening.getsockname()[1]
    is_any = door.host in ("0.0.0.0", "::")
    name = socket.gethostname() if is_any else door.host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={door.token}" if door.token else "")
