"""Workload on a real Ray cluster of two nodes; one of them is killed in the middle of the work."""

import json
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from heedful.cluster import connection, engine
from heedful.cluster.calibration import measure_on
from heedful.cluster.connection import NodeFacts, complaint_of, reaching
from heedful.cluster.engine import Workload, finish
from heedful.cluster.shards import audit_shards
from heedful.cluster.studies import compute_on
from heedful.errors import InputError
from heedful.reproduction.request import StudyRequest
from heedful.reproduction.results import Results
from heedful.runs.provenance import code_digest, versions
from heedful.studies import reproduce
from tests.cluster.shard_files import METHODS, saved_model, written_shards

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at; a busy machine is slow to find them by itself."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind((LOOPBACK, 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def node(**more: Any) -> dict[str, Any]:
    """A node of one core that listens on the loopback alone."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
    ports = dict(zip((*names, "runtime_env_agent_port"), free_ports(4), strict=True))
    return {"num_cpus": 1, "node_ip_address": LOOPBACK, **ports, **more}


@pytest.fixture(scope="module")
def client_port():
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def cluster(client_port):
    pytest.importorskip("ray")
    import ray
    from ray._private import ray_constants
    from ray.cluster_utils import Cluster

    head = node(include_dashboard=False, ray_client_server_port=client_port)
    with pytest.MonkeyPatch.context() as patched:
        # Otherwise Ray puts the address of this machine in the place of the loopback's.
        patched.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patched.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        started = Cluster(initialize_head=True, head_node_args=head)
        ray.init(started.address, log_to_driver=False, logging_level="ERROR")
        yield started
        ray.shutdown()
        started.shutdown()


def there():
    """The cluster of these tests, which this process is connected to."""
    return reaching("ray", "json")


@contextmanager
def killing(cluster, victim, journal: Path, lines: int):
    """Kills a node as soon as so many steps are in the journal; it has worked by then."""
    killed = []

    def wait() -> None:
        while not journal.is_file() or len(journal.read_text().splitlines()) < lines:
            time.sleep(0.02)
        cluster.remove_node(victim, allow_graceful=False)
        killed.append(victim.node_id)

    thread = Thread(target=wait, daemon=True)
    thread.start()
    yield
    thread.join(30)
    assert killed


def computed(folder: Path) -> list[str]:
    return [entry["step"] for entry in Results(folder).journal()]


@pytest.mark.slow
def test_an_audit_whose_node_is_killed_says_what_one_machine_says(cluster, tmp_path):
    written_shards(tmp_path, shards=8, each=40)
    options = {"audits": ("concentration", "confidence"), "methods": METHODS, "documents": 0}
    named = saved_model(tmp_path), str(tmp_path / "shards/*.parquet")
    plain = audit_shards(*named, tmp_path / "plain", device="cpu", **options)
    second = cluster.add_node(**node())
    out = tmp_path / "far"
    with killing(cluster, second, out / "shards" / "journal.jsonl", 3):
        far = audit_shards(*named, out, device="cpu", on="ray", **options)
    # To the last digit, and nothing twice but what the lost node was at.
    assert _numbers(far) == _numbers(plain)
    steps = computed(out / "shards")
    assert sorted(set(steps)) == sorted(computed(tmp_path / "plain" / "shards"))
    assert len(steps) - len(set(steps)) <= engine.AHEAD
    assert not [path for path in out.rglob("*.tmp*") if path.is_file()]


def _numbers(result):
    found = result.to_json()
    return json.dumps({name: found[name] for name in ("findings", "documents", "quality")})


@pytest.mark.slow
def test_a_study_whose_node_is_killed_says_what_one_machine_says(cluster, tmp_path):
    options = {"only": ("T1",), "corpora": ("planted",), "seeds": 2}
    plain = reproduce("quicklook", out=tmp_path / "plain", figures=False, **options)
    second = cluster.add_node(**node())
    steps = tmp_path / "far" / "quicklook" / "steps"
    with killing(cluster, second, steps / "journal.jsonl", 3), there() as reached:
        asked = StudyRequest(out=tmp_path / "far", **options)
        outcomes = compute_on("quicklook", reached, asked)
    far = reproduce("quicklook", out=tmp_path / "far", figures=False, compute=False, **options)
    assert not far.studies[0].skipped
    tables = [sorted((one.folder).glob("*.csv")) for one in plain.studies + far.studies]
    assert [path.name for path in tables[0]] == [path.name for path in tables[1]]
    assert [path.read_bytes() for path in tables[0]] == [path.read_bytes() for path in tables[1]]
    done = computed(steps)
    assert set(done) == set(outcomes) == set(computed(tmp_path / "plain" / "quicklook" / "steps"))
    assert len(done) - len(set(done)) <= engine.AHEAD


def until_lost_nodes_are_known(seconds: float = 120) -> None:
    """Ray counts a killed node for some seconds, and a client that is placed there is cut off."""
    import ray

    end = time.monotonic() + seconds
    while sum(one["Alive"] for one in ray.nodes()) > 1:
        assert time.monotonic() < end, ray.nodes()
        time.sleep(0.2)


def by_client(port: int, *typed: object) -> str:
    """What the command prints, in a process that reaches the cluster by its client port alone."""
    until_lost_nodes_are_known()
    command = [sys.executable, "-m", "heedful", *map(str, typed), "--json"]
    command += ["--on", f"ray://{LOOPBACK}:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_audit_by_the_client_port_says_what_one_machine_says(cluster, client_port, tmp_path):
    written_shards(tmp_path, shards=3, each=40)
    chosen = ("concentration", "confidence")
    pattern, model = str(tmp_path / "shards/*.parquet"), saved_model(tmp_path)
    plain = audit_shards(model, pattern, tmp_path / "plain", device="cpu", documents=0,
                         audits=chosen, methods=METHODS)  # fmt: skip
    said = by_client(
        client_port, "audit", model, "--data", pattern, "--documents", 0, "--out", tmp_path / "far",
        "--audits", ",".join(chosen), "--methods", ",".join(METHODS), "--device", "cpu",
    )  # fmt: skip
    far, wanted = json.loads(said), json.loads(json.dumps(plain.to_json()))
    for name in ("findings", "documents", "quality"):
        assert far[name] == wanted[name]
    assert len(computed(tmp_path / "far" / "shards")) == 3


class CutOff:
    """Stands for Ray, whose first connections are to a node that is no more."""

    def __init__(self, cut: int) -> None:
        self.cut, self.tries, self.ended = cut, 0, 0

    def init(self, address: str, **_: object) -> None:
        self.tries += 1
        if self.tries <= self.cut:
            raise ConnectionError(f"the channel to {address} broke\nand more")

    def shutdown(self) -> None:
        self.ended += 1


def test_a_client_that_is_cut_off_tries_once_more():
    ray = CutOff(1)
    connection._connect(ray, "ray://there:1")
    assert (ray.tries, ray.ended) == (2, 1)
    ray = CutOff(2)
    with pytest.raises(InputError, match=r"No Ray cluster answers .*there:1 broke\)\.$"):
        connection._connect(ray, "ray://there:1")
    assert (ray.tries, ray.ended) == (2, 2)


@pytest.mark.slow
def test_a_study_by_the_client_port_says_what_one_machine_says(cluster, client_port, tmp_path):
    options = {"only": ("T1",), "corpora": ("planted",), "seeds": 1}
    plain = reproduce("quicklook", out=tmp_path / "plain", figures=False, **options)
    by_client(
        client_port, "reproduce", "quicklook", "--only", "T1", "--corpora", "planted",
        "--seeds", 1, "--out", tmp_path / "far", "--no-figures",
    )  # fmt: skip
    here, there = plain.studies[0].folder, tmp_path / "far" / "quicklook"
    names = sorted(path.name for path in here.glob("*.csv"))
    assert names
    assert names == sorted(path.name for path in there.glob("*.csv"))
    assert all((here / name).read_bytes() == (there / name).read_bytes() for name in names)


@pytest.mark.slow
def test_pieces_come_after_their_needs_and_skips_are_passed_on(cluster, tmp_path, capsys):
    needs = {"second": ["first"], "lost": ["absent"], "last": ["lost", "second"]}
    pieces = Workload(
        "tests.cluster.pieces",
        {"folder": str(tmp_path)},
        ["absent", "first", "second", "lost", "last"],
        needs,
    )
    with there() as reached:
        found = finish(pieces, reached, tmp_path, show=True)
    order = (tmp_path / "order.txt").read_text().split()
    assert order.index("first") < order.index("second")
    assert set(order) == {"absent", "first", "second"}
    assert [found[name].skipped for name in ("lost", "last")] == ["no such corpus"] * 2
    said = capsys.readouterr().err
    assert "step 1/5, time left unknown: absent" in said
    assert "absent skipped: no such corpus" in said


@pytest.mark.slow
def test_a_worker_opens_once_what_its_pieces_share(cluster, tmp_path):
    names = [f"piece {number}" for number in range(12)]
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, names)
    with there() as reached:
        finish(pieces, reached, tmp_path)
    opened = (tmp_path / "opened.txt").read_text().split()
    assert sorted((tmp_path / "order.txt").read_text().splitlines()) == sorted(names)
    assert len(set(opened)) == len(opened) < len(names)


@pytest.mark.slow
def test_one_flag_uses_all_cards_and_each_piece_has_one(cluster, tmp_path):
    second = cluster.add_node(**node(num_cpus=2, num_gpus=2))  # cards in name only
    names = [f"card {number}" for number in range(6)]
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, names)
    with there() as reached:
        found = finish(pieces, reached, tmp_path, device="cuda")
    cluster.remove_node(second)
    lines = [line.split() for line in (tmp_path / "cards.txt").read_text().splitlines()]
    assert {one.node for one in found.values()} == {second.node_id}
    assert {card for card, _, _ in lines} == {"0", "1"}
    by_card = {card: sorted((float(a), float(b)) for one, a, b in lines if one == card)
               for card in ("0", "1")}  # fmt: skip
    for spans in by_card.values():  # a card has one piece at a time
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert any(a < other[1] and other[0] < b for a, b in by_card["0"] for other in by_card["1"])


@pytest.mark.slow
def test_a_bug_in_a_piece_ends_the_work_with_its_own_error(cluster, tmp_path):
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, ["bug"])
    with there() as reached, pytest.raises(ZeroDivisionError, match="a bug"):
        finish(pieces, reached, tmp_path)


@pytest.mark.slow
def test_a_card_that_the_cluster_lacks_is_refused_before_anything_runs(cluster, tmp_path):
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, ["first"])
    with there() as reached, pytest.raises(InputError, match="The cluster has no card"):
        finish(pieces, reached, tmp_path, device="cuda")
    assert not (tmp_path / "order.txt").exists()


@pytest.mark.slow
def test_a_node_with_other_code_is_refused_before_anything_runs(cluster, tmp_path, monkeypatch):
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, ["first"])
    monkeypatch.setattr(connection, "code_digest", lambda: "other code")
    said = r"Node .* has heedful .* with other code than here"
    with there() as reached, pytest.raises(InputError, match=said):
        finish(pieces, reached, tmp_path)
    assert not (tmp_path / "order.txt").exists()


@pytest.mark.slow
def test_mechanisms_of_a_calibration_are_measured_on_the_cluster(cluster, tmp_path, monkeypatch):
    from heedful.calibration.calibrate import SCALES, measured_once

    one = SCALES["quick"].names()[:1]
    monkeypatch.setattr(type(SCALES["quick"]), "names", lambda self: one)
    with there() as reached:
        found = measure_on(reached, tmp_path / "far")
    assert list(found) == one
    plain = measured_once(one[0], tmp_path / "plain", 0, SCALES["quick"])
    assert measured_once(one[0], tmp_path / "far", 0, SCALES["quick"]) == plain


def test_what_a_node_lacks_is_said_in_a_sentence(tmp_path):
    own = versions()
    assert complaint_of(NodeFacts(own, code_digest(), True), tmp_path) == ""
    assert complaint_of(NodeFacts({}, "", False), tmp_path).startswith("has no heedful;")
    other = own | {"heedful": "0.0.9"}
    said = f"has heedful 0.0.9, here it is {own['heedful']};"
    assert complaint_of(NodeFacts(other, code_digest(), True), tmp_path).startswith(said)
    unseen = complaint_of(NodeFacts(own, code_digest(), False), tmp_path)
    assert unseen.startswith(f"does not see {tmp_path};")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ray://127.0.0.1:9", "Nobody answers at ray://127.0.0.1:9"),
        ("ray://nosuchhost.invalid:10001", "Nobody answers at"),
        ("ray://127.0.0.1", "--on is ray or ray://HOST:PORT"),
        ("spark", "--on is ray or ray://HOST:PORT"),
    ],
)
def test_an_address_where_nobody_answers_is_said(address, said, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(InputError, match=said), reaching(address, "json"):
        pass
