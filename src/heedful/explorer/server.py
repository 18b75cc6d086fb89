"""The server of the live page: a few addresses, JSON in and out, and one worker behind them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import webbrowser
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from heedful import __version__
from heedful.errors import InputError
from heedful.explorer.documents import OfferedDocuments
from heedful.explorer.safety import Door, Guard
from heedful.explorer.texts import (
    MOST_CHARACTERS,
    MOST_UNITS,
    ExploredModel,
    TextAsked,
    WordEdit,
    edited,
    explanation_steps,
)
from heedful.explorer.worker import EDIT, FIRST, IDLE, Busy, Event, Job, Worker, WorkStep
from heedful.report.html import asset, bundled, template

SCRIPTS = (
    "decision.js", "words.js", "flow.js", "heads.js", "panel.js", "list.js", "curve.js",
    "export.js", "live.js", "explore.js", "start.js",
)  # fmt: skip


def explore_page(models: Sequence[str]) -> str:
    """The page; all that is about a text is put into it by the script."""
    return template("explore.html").render(models=models, version=__version__)


def explore_script() -> str:
    """All scripts of the page as one file."""
    return bundled(SCRIPTS)


def explore_style() -> str:
    """The report's style, and what is added to it."""
    return asset("page.css") + asset("explore.css")


BUSY = "So many texts are being explained that this one must wait; try again in a moment."
RETRY_SECONDS = 1
LOOK_UP_SECONDS = 0.25
"""How often a client that waits is looked at: is it still there?"""


@dataclass(frozen=True, eq=False)
class Explorer:
    """What the page can ask for."""

    models: Sequence[ExploredModel]
    documents: OfferedDocuments = field(default_factory=OfferedDocuments)
    worker: Worker = field(default_factory=Worker)
    seed: int = 0

    def about(self) -> dict[str, Any]:
        """The models, and what there is to pick from."""
        offered = self.documents
        return {
            "models": [model.about() for model in self.models],
            "documents": {
                "name": offered.name, "total": len(offered.documents), "of": offered.of,
                "labels": list(offered.classes),
            },
            "limits": {"characters": MOST_CHARACTERS, "units": MOST_UNITS},
        }  # fmt: skip

    def explaining(self, asked: dict[str, Any]) -> Job:
        """A text explained in every way, told step by step."""
        model, text = self._model(asked), _text(asked)
        return Job(explanation_steps(model, text, self.seed), _untold, FIRST)

    def deciding(self, asked: dict[str, Any]) -> Job:
        """A text decided under another attention."""
        model, text = self._model(asked), _text(asked)
        edit = WordEdit.checked(asked.get("erased", []), asked.get("weights"))
        step = WorkStep(model.model, partial(edited, model, text, edit))
        return Job(deque([step]), _untold, EDIT)

    def _model(self, asked: dict[str, Any]) -> ExploredModel:
        number = asked.get("model", 0)
        if type(number) is not int or not 0 <= number < len(self.models):
            raise InputError(f"There is no model {number!r}; there are {len(self.models)}.")
        return self.models[number]


def application(explorer: Explorer, door: Door = Door()) -> Guard:
    """The ASGI application, behind its guard."""
    # Documents are of whoever starts the server, texts of whoever types: no address is a path.
    script, style = explore_script(), explore_style()
    page = explore_page([model.name for model in explorer.models])

    @asynccontextmanager
    async def working(app: Starlette) -> AsyncIterator[None]:
        if explorer.documents.documents:
            steps = explorer.documents.steps(explorer.models[0])
            explorer.worker.submit(Job(steps, _untold, IDLE))
        try:
            yield
        finally:
            explorer.worker.stop()

    async def about(request: Request) -> Response:
        return JSONResponse(explorer.about())

    async def documents(request: Request) -> Response:
        given = request.query_params
        label, decision, search = (
            given.get(name, "")[:200] for name in ("label", "decision", "search")
        )
        start = _whole(given.get("start", "0"))
        return JSONResponse(explorer.documents.page(label, decision, search, start))

    async def document(request: Request) -> Response:
        return JSONResponse(explorer.documents.one(_whole(request.path_params["number"])))

    async def explain(request: Request) -> Response:
        job = explorer.explaining(await _json(request))
        events = _submit(explorer.worker, job)
        return StreamingResponse(
            _stream(request, explorer.worker, job, events), media_type="text/event-stream"
        )

    async def decide(request: Request) -> Response:
        job = explorer.deciding(await _json(request))
        events = _submit(explorer.worker, job)
        found: Event = {}
        async for event in _heard(request, explorer.worker, job, events):
            found = found | (event or {})
        status = 200 if "error" not in found else 500 if found.pop("ours", False) else 400
        return JSONResponse(found, status)

    async def refused(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 400)

    async def busy(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": BUSY}, 503, {"Retry-After": str(RETRY_SECONDS)})

    async def missing(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "There is nothing at this address."}, 404)

    routes = [
        Route("/", _file(page, "text/html")),
        Route("/page.js", _file(script, "text/javascript")),
        Route("/page.css", _file(style, "text/css")),
        Route("/api/about", about),
        Route("/api/documents", documents),
        Route("/api/documents/{number}", document),
        Route("/api/explain", explain, methods=["POST"]),
        Route("/api/decide", decide, methods=["POST"]),
    ]
    handlers: Any = {InputError: refused, Busy: busy, 404: missing}
    explorer.worker.start()  # here, where no memory for a thread is said in a sentence
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=working), door)


def _file(text: str, kind: str) -> Any:
    async def given(request: Request) -> Response:
        return Response(text, media_type=kind)

    return given


def _submit(worker: Worker, job: Job) -> asyncio.Queue[Event | None]:
    """The queue in which a job's events will arrive."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(event: Event | None) -> None:
        with suppress(RuntimeError):  # the server has stopped
            loop.call_soon_threadsafe(events.put_nowait, event)

    job.tell = tell
    worker.submit(job)
    return events


async def _heard(
    request: Request, worker: Worker, job: Job, events: asyncio.Queue[Event | None]
) -> AsyncIterator[Event | None]:
    """A job's events; None while it waits. Who goes away takes the job along."""
    try:
        while True:
            try:
                event = await asyncio.wait_for(events.get(), LOOK_UP_SECONDS)
            except TimeoutError:
                if await request.is_disconnected():
                    return
                yield None
                continue
            if event is None:
                return
            yield event
    finally:
        worker.cancel(job)


async def _stream(
    request: Request, worker: Worker, job: Job, events: asyncio.Queue[Event | None]
) -> AsyncIterator[str]:
    """The events as server-sent events; a comment while there is none, so that a gap is noticed."""
    is_whole = True
    async for event in _heard(request, worker, job, events):
        is_whole = is_whole and "error" not in (event or {})
        told = event and json.dumps(event, allow_nan=False)
        yield f"data: {told}\n\n" if told else ": waiting\n\n"
    if is_whole:
        yield 'data: {"done": true}\n\n'


async def _json(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise InputError("Expected a JSON object in the body.") from error
    if not isinstance(found, dict):
        raise InputError("Expected a JSON object in the body.")
    return found


def _text(asked: dict[str, Any]) -> TextAsked:
    return TextAsked.checked(asked.get("text"), asked.get("text2"))


def _whole(given: str) -> int:
    if not given.isdecimal() or len(given) > 9:
        raise InputError(f"Expected a whole number, got {given[:20]!r}.")
    return int(given)


def _untold(event: Event | None) -> None:
    """What becomes of events that nobody waits for."""


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
