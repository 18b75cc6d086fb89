"""Workload on a real Ray cluster of two nodes; one of them is killed in the middle of the work."""

import json
import socket
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from heedful.cluster import engine
from heedful.cluster.calibration import measure_on
from heedful.cluster.engine import NodeFacts, Workload, complaint_of, connected, finish
from heedful.cluster.shards import audit_shards
from heedful.cluster.studies import compute_on
from heedful.errors import InputError
from heedful.reproduction.results import Results
from heedful.runs.provenance import code_digest, versions
from heedful.studies import reproduce
from tests.cluster.shard_files import METHODS, saved_model, written_shards


def node() -> dict[str, int]:
    """A node of one core; a busy machine is slow to find ports for its helpers by itself."""
    sockets = [socket.socket() for _ in range(4)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
    return {"num_cpus": 1, **dict(zip((*names, "runtime_env_agent_port"), ports, strict=True))}


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    head = {"include_dashboard": False, **node()}
    started = Cluster(initialize_head=True, head_node_args=head)
    ray.init(started.address, log_to_driver=False, logging_level="ERROR")
    yield started
    ray.shutdown()
    started.shutdown()


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
    options = {"only": ["T1"], "corpora": ["planted"], "seeds": 2}
    plain = reproduce("quicklook", out=tmp_path / "plain", figures=False, **options)
    second = cluster.add_node(**node())
    steps = tmp_path / "far" / "quicklook" / "steps"
    with killing(cluster, second, steps / "journal.jsonl", 3):
        outcomes = compute_on("quicklook", "ray", out=tmp_path / "far", **options)
    far = reproduce("quicklook", out=tmp_path / "far", figures=False, compute=False, **options)
    assert not far.studies[0].skipped
    tables = [sorted((one.folder).glob("*.csv")) for one in plain.studies + far.studies]
    assert [path.name for path in tables[0]] == [path.name for path in tables[1]]
    assert [path.read_bytes() for path in tables[0]] == [path.read_bytes() for path in tables[1]]
    done = computed(steps)
    assert set(done) == set(outcomes) == set(computed(tmp_path / "plain" / "quicklook" / "steps"))
    assert len(done) - len(set(done)) <= engine.AHEAD


@pytest.mark.slow
def test_pieces_come_after_their_needs_and_skips_are_passed_on(cluster, tmp_path, capsys):
    needs = {"second": ["first"], "lost": ["absent"], "last": ["lost", "second"]}
    pieces = Workload(
        "tests.cluster.pieces",
        {"folder": str(tmp_path)},
        ["absent", "first", "second", "lost", "last"],
        needs,
    )
    found = finish(pieces, "ray", tmp_path, show=True)
    order = (tmp_path / "order.txt").read_text().split()
    assert order.index("first") < order.index("second")
    assert set(order) == {"absent", "first", "second"}
    assert [found[name].skipped for name in ("lost", "last")] == ["no such corpus"] * 2
    said = capsys.readouterr().err
    assert "step 1/5, time left unknown: absent" in said
    assert "absent skipped: no such corpus" in said


@pytest.mark.slow
def test_a_bug_in_a_piece_ends_the_work_with_its_own_error(cluster, tmp_path):
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, ["bug"])
    with pytest.raises(ZeroDivisionError, match="a bug"):
        finish(pieces, "ray", tmp_path)


@pytest.mark.slow
def test_a_card_that_the_cluster_lacks_is_refused_before_anything_runs(cluster, tmp_path):
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, ["first"])
    with pytest.raises(InputError, match="The cluster has no card"):
        finish(pieces, "ray", tmp_path, device="cuda")
    assert not (tmp_path / "order.txt").exists()


@pytest.mark.slow
def test_a_node_with_other_code_is_refused_before_anything_runs(cluster, tmp_path, monkeypatch):
    pieces = Workload("tests.cluster.pieces", {"folder": str(tmp_path)}, ["first"])
    monkeypatch.setattr(engine, "code_digest", lambda: "other code")
    with pytest.raises(InputError, match=r"Node .* has heedful .* with other code than here"):
        finish(pieces, "ray", tmp_path)
    assert not (tmp_path / "order.txt").exists()


@pytest.mark.slow
def test_mechanisms_of_a_calibration_are_measured_on_the_cluster(cluster, tmp_path, monkeypatch):
    from heedful.calibration.calibrate import SCALES, measured_once

    one = SCALES["quick"].names()[:1]
    monkeypatch.setattr(type(SCALES["quick"]), "names", lambda self: one)
    found = measure_on("ray", tmp_path / "far")
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
    with pytest.raises(InputError, match=said), connected(address):
        pass
