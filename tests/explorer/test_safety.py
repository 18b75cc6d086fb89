"""Who gets an answer: this machine's own page, and from elsewhere only who has the token."""

from collections.abc import Iterator

import pytest

from heedful.explorer.safety import COOKIE, MOST_BYTES, Door
from heedful.explorer.server import Explorer
from tests.explorer.serving_models import Client, linear, served

TEXT = {"text": "good food"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with served(Explorer([linear()])) as found:
        yield found


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[Client, Door]]:
    """A server that others could reach, asked by an address."""
    door = Door.at("0.0.0.0")
    with served(Explorer([linear()]), door) as found:
        yield found, door


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST", "localhost."])
def test_this_machine_is_answered(client: Client, name: str) -> None:
    assert client.ask("/api/about", host=f"{name}:{client.port}")[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.7", "", "[::1", "localhost@evil"]
)
@pytest.mark.parametrize("path", ["/", "/page.js", "/api/about", "/nothing"])
def test_a_name_made_to_point_here_is_refused(client: Client, host: str, path: str) -> None:
    status, _, told = client.ask(path, host=host)
    assert status == 403
    assert b"terminal shows" in told


@pytest.mark.parametrize("path", ["/api/explain", "/api/decide"])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"]
)
def test_a_page_from_elsewhere_is_refused(client: Client, path: str, origin: str) -> None:
    assert client.ask(path, TEXT, origin=origin)[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_the_browser_calls_foreign_is_refused_but_a_link_is_followed(
    client: Client, site: str
) -> None:
    assert client.ask("/api/about", sec_fetch_site=site)[0] == 403
    assert client.ask("/api/about", sec_fetch_site=site, sec_fetch_mode="navigate")[0] == 403
    assert client.ask("/", sec_fetch_site=site, sec_fetch_mode="navigate")[0] == 200


def test_our_own_page_is_answered(client: Client) -> None:
    origin = f"http://127.0.0.1:{client.port}"
    status, _, _ = client.ask("/api/decide", TEXT, origin=origin, sec_fetch_site="same-origin")
    assert status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_form_from_elsewhere_cannot_ask(client: Client, kind: str) -> None:
    assert client.ask("/api/explain", TEXT, content_type=kind)[0] == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    assert client.ask("/api/explain", TEXT, method)[0] == 405


def test_a_large_request_is_refused(client: Client) -> None:
    status, _, told = client.ask("/api/explain", b"[" * (MOST_BYTES + 1))
    assert status == 413
    assert b"larger than" in told


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/about", "/nothing", "/api/documents/x"])
def test_every_answer_has_the_policy(client: Client, path: str) -> None:
    _, headers, _ = client.ask(path)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_from_elsewhere_nobody_asks_without_the_token(remote: tuple[Client, Door]) -> None:
    client, door = remote
    wrong = ("", f"{COOKIE}=", f"{COOKIE}={door.token[:-1]}", f"{COOKIE}=é", "; ;=")
    for cookie in wrong:
        for path in ("/", "/page.js", "/api/about"):
            assert client.ask(path, cookie=cookie)[0] == 401
        assert client.ask("/api/explain", TEXT, cookie=cookie)[0] == 401
    assert client.ask("/api/about", authorization="Bearer nonsense")[0] == 401
    assert client.ask("/?token=nonsense")[0] == 401
    assert client.ask("/api/about", authorization=f"Bearer {door.token}")[0] == 200


def test_the_token_goes_from_the_address_into_a_cookie(remote: tuple[Client, Door]) -> None:
    client, door = remote
    status, headers, told = client.ask(f"/?token={door.token}")
    assert (status, headers["location"], told) == (303, "/", b"")
    cookie, *marks = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(marks)
    assert client.ask("/", cookie=cookie)[0] == 200
    assert client.ask("/api/about", cookie=cookie, host="evil.example")[0] == 403
    assert client.ask("/api/about", cookie=cookie, origin="http://evil.example")[0] == 403


def test_a_token_is_long_new_and_not_shown_by_chance() -> None:
    first, second = Door.at("0.0.0.0"), Door.at("0.0.0.0")
    assert len(first.token) >= 32
    assert first.token != second.token
    assert first.token not in repr(first)
    assert not Door.at("127.0.0.1").token
