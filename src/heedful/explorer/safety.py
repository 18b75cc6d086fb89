"""Who may ask, and what may be sent: a wall around the server's answers.

The page is for the person at this machine. A page from elsewhere that the same browser has open
must neither read nor cause anything here, also where its name was made to point to this machine
(DNS rebinding) or where it only sends (cross-site requests). From other machines nobody asks
without the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 256 * 1024
"""Of the body of one request."""
COOKIE = "heedful-token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer: what is not the page's own file neither runs nor loads."""


@dataclass(frozen=True)
class Door:
    """How the server is reached: only as this machine, or from elsewhere with a token."""

    host: str = "127.0.0.1"
    token: str = field(default="", repr=False)

    @classmethod
    def at(cls, host: str) -> Door:
        """The door of a server that listens there, with a new token where others can reach it."""
        return cls(host, "" if host in LOOPBACK else secrets.token_urlsafe(24))

    @property
    def is_open(self) -> bool:
        """Whether others than this machine can reach it."""
        return self.host not in LOOPBACK

    def admits_host(self, header: str) -> bool:
        """Whether a request was meant for this server.

        A rebound name is a name, so an address is trusted, and of names only our own.
        """
        try:
            name = (urlsplit(f"//{header}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if not self.is_open:
            return name in LOOPBACK
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in (*LOOPBACK, self.host.lower(), socket.gethostname().lower())

    def admits_token(self, given: str) -> bool:
        """Whether the token is ours, compared in constant time."""
        return hmac.compare_digest(given.encode(), self.token.encode())


@dataclass(frozen=True)
class Guard:
    """Lets in what the door admits, in bounded size, and marks every answer."""

    app: ASGIApp
    door: Door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return None
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(n.lower().encode(), v.encode()) for n, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal:
            return await _answer(marked, *refusal)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if self.door.is_open and query.get("token") and scope["method"] == "GET":
            return await self._welcome(query["token"][0], scope, marked)
        if self.door.is_open and not self.door.admits_token(_token_of(headers)):
            return await _answer(
                marked, 401, "Open the address with the token that the terminal shows."
            )
        body = b""
        if scope["method"] == "POST":
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return await _answer(marked, 415, "Expected JSON (content-type application/json).")
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                if len(body) > MOST_BYTES:
                    said = f"The request is larger than {MOST_BYTES:,} bytes; paste less."
                    return await _answer(marked, 413, said)
                if not message.get("more_body"):
                    break
        is_read = False

        async def again() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self.app(scope, again, marked)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self.door.admits_host(host):
            return 403, "This server answers only to the address that the terminal shows."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        is_foreign = origin is not None and origin != f"{scope['scheme']}://{host}"
        # Following a link from elsewhere to the page itself is harmless; all else is its own.
        is_link = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if is_foreign or (site not in ("same-origin", "none") and not is_link):
            return 403, "This server answers only to its own page."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Expected GET or POST."
        return None

    async def _welcome(self, token: str, scope: Scope, send: Send) -> None:
        """Keeps a right token in a cookie, out of the address; a wrong one is refused."""
        if not self.door.admits_token(token):
            return await _answer(send, 401, "The token is not the one that the terminal shows.")
        cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return None


def _token_of(headers: dict[str, str]) -> str:
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
