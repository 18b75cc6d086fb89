"""The server: what is asked is answered, or refused in a sentence, and it stays well."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from heedful.errors import InputError
from heedful.explorer.safety import Door
from heedful.explorer.server import (
    BUSY,
    SCRIPTS,
    Explorer,
    address_of,
    explore_page,
    explore_script,
    explore_style,
    listen,
)
from heedful.explorer.worker import Worker
from heedful.models import decide, erase, read
from heedful.report.html import asset
from heedful.report.page import SCRIPTS as REPORT_SCRIPTS
from tests.explorer.serving_models import Client, documents, events_in, layered, linear, served

TEXT = "good food and bad service"


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return Explorer([linear(), layered()], documents())


@pytest.fixture(scope="module")
def client(explorer: Explorer) -> Iterator[Client]:
    with served(explorer) as found:
        yield found


def idle(explorer: Explorer, seconds: float = 10) -> bool:
    """Whether the worker is soon without work."""
    until = time.monotonic() + seconds
    while explorer.worker.in_flight and time.monotonic() < until:
        time.sleep(0.01)
    return not explorer.worker.in_flight


def test_the_page_and_its_files_are_there(client: Client) -> None:
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "css")):
        status, headers, told = client.ask(path)
        assert status == 200
        assert kind in headers["content-type"]
        assert len(told) > 1000
    page = client.ask("/")[2].decode()
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == 1


def test_models_are_named_with_what_the_page_needs(client: Client) -> None:
    about = client.json("/api/about")
    assert [model["name"] for model in about["models"]] == ["linear", "layered"]
    assert about["models"][0]["recommended"] == "leave-one-out"
    assert about["documents"]["total"] == 30


@pytest.mark.parametrize("model", [0, 1])
def test_a_text_is_told_step_by_step_to_the_end(client: Client, model: int) -> None:
    events = client.events({"text": TEXT, "model": model})
    assert events[0]["entry"]["units"] == TEXT.split()
    assert events[-1] == {"done": True}
    assert len(events) == events[0]["steps"] + 1


@pytest.mark.parametrize("number", [0, 1])
def test_a_decision_is_that_of_decide(client: Client, explorer: Explorer, number: int) -> None:
    model = explorer.models[number].model
    reading = read(model, model.batch([TEXT]))
    gone = torch.tensor([[[True, False, False, False, False]]])
    wanted = decide(model, reading, erase(gone))[0, 0].softmax(-1).tolist()
    found = client.json("/api/decide", {"text": TEXT, "model": number, "erased": [0]})
    assert found["attention"] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"[]", b"3", b"[" * 5000, {}, {"text": ""}, {"text": 3}, {"text": TEXT, "model": 7},
     {"text": TEXT, "model": "0"}, {"text": TEXT, "model": True}, {"text": "x" * 20_001},
     {"text": TEXT, "erased": "all"}, {"text": TEXT, "text2": "x"}],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_a_sentence(client: Client, body: object) -> None:
    status, _, told = client.ask("/api/decide", body)
    assert status == 400
    said = json.loads(told)["error"]
    assert said.endswith(".")
    assert "Traceback" not in said


def test_bad_input_that_is_found_late_ends_the_stream(client: Client) -> None:
    (event,) = client.events({"text": "a " * 1001})
    assert "1,001 words" in event["error"]


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/..%2f..%2fetc/passwd", "/page.js/..", "/static/x", "/api/documents/..",
     "/api/documents/%2e%2e%2fx", "/api/documents/-1", "/api/documents/99999", "//etc/passwd"],
)  # fmt: skip
def test_no_path_reaches_a_file(client: Client, path: str) -> None:
    status, _, told = client.ask(path)
    assert status in (400, 404)
    assert json.loads(told)["error"]


def test_documents_are_read_when_there_is_nothing_else_to_do(client: Client) -> None:
    until = time.monotonic() + 20
    while (page := client.json("/api/documents"))["known"] < 30 and time.monotonic() < until:
        time.sleep(0.05)
    assert page["known"] == page["total"] == page["found"] == 30
    assert len(page["documents"]) == 20
    assert len(client.json("/api/documents?start=20")["documents"]) == 10
    first = page["documents"][0]
    text = client.json(f"/api/documents/{first['number']}")["text"]
    assert text.startswith(first["beginning"])
    (event, *_) = client.events({"text": text})
    assert max(event["entry"]["probabilities"]) == pytest.approx(first["probability"])


@pytest.mark.slow
def test_a_client_that_goes_away_takes_its_work_along(client: Client, explorer: Explorer) -> None:
    model = explorer.models[1].model.model  # whose every pass now takes its time
    hook = model.bert.embeddings.register_forward_pre_hook(lambda *_: time.sleep(0.2))
    body = json.dumps({"text": TEXT + " one two three", "model": 1}).encode()
    head = f"POST /api/explain HTTP/1.1\r\nhost: 127.0.0.1:{client.port}\r\ncontent-length: "
    head += f"{len(body)}\r\ncontent-type: application/json\r\n\r\n"
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", client.port)) as raw:
            raw.sendall(head.encode() + body)
            assert raw.recv(64).startswith(b"HTTP/1.1 200")
    with socket.create_connection(("127.0.0.1", client.port)) as raw:
        raw.sendall(head.encode() + body[:10])  # and one that never says all
    assert idle(explorer, 2)
    hook.remove()
    assert client.events({"text": TEXT, "model": 1})[-1] == {"done": True}


def test_too_much_at_once_is_answered_as_busy() -> None:
    explorer = Explorer([linear()], worker=Worker(most=2))
    model, held = explorer.models[0].model, threading.Event()
    hook = model.embedding.register_forward_pre_hook(lambda *_: held.wait(20) and None)
    with served(explorer) as client, ThreadPoolExecutor(2) as others:
        try:
            waiting = [others.submit(client.events, {"text": f"good {n}"}) for n in range(2)]
            while explorer.worker.in_flight < 2:
                time.sleep(0.01)
            for path in ("/api/explain", "/api/decide"):
                status, headers, told = client.ask(path, {"text": TEXT})
                assert (status, json.loads(told)["error"]) == (503, BUSY)
                assert int(headers["retry-after"]) >= 1
            assert client.ask("/api/about")[0] == 200
        finally:
            held.set()
        assert all(one.result()[-1] == {"done": True} for one in waiting)
        hook.remove()
        assert client.events({"text": TEXT})[-1] == {"done": True}


def test_many_clients_get_the_right_answer_or_the_busy_one(
    client: Client, explorer: Explorer
) -> None:
    texts = [f"good food and bad service {'very ' * n}" for n in range(6)]
    wanted = [client.events({"text": text})[0]["entry"] for text in texts]

    def one(number: int) -> int:
        status, _, told = client.ask("/api/explain", {"text": texts[number % 6]})
        if status == 503:
            return 0
        events = events_in(told)
        assert events[0]["entry"] == wanted[number % 6]
        assert events[-1] == {"done": True}
        return 1

    with ThreadPoolExecutor(24) as clients:
        done = list(clients.map(one, range(96)))
    assert sum(done) >= 16
    assert idle(explorer)


def test_the_page_is_made_of_the_reports_components() -> None:
    assert set(REPORT_SCRIPTS) <= set(SCRIPTS)
    assert all(asset(name) in explore_script() for name in REPORT_SCRIPTS)
    assert explore_style().startswith(asset("page.css"))


def test_the_name_of_a_model_is_text() -> None:
    page = explore_page(["<script>alert(1)</script>"])
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_nothing_comes_from_elsewhere() -> None:
    for text in (explore_page(["a"]), explore_script(), explore_style()):
        assert "http://" not in text
        assert "https://" not in text
    assert "innerHTML" not in explore_script()


def test_the_address_names_the_port_and_the_token() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert address_of(Door.at("127.0.0.1"), listening) == f"http://127.0.0.1:{port}/"
        door = Door.at("192.0.2.1")
        assert address_of(door, listening) == f"http://192.0.2.1:{port}/?token={door.token}"


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*choose another --port"):
            listen("127.0.0.1", port)
