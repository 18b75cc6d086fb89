import numpy as np
import pandas as pd

from heedful.cluster.shard_files import SHARD, ShardFound, keys_of, sums_in
from heedful.statistics.sums import Sums


def test_sums_come_back_as_they_were_and_shared_ones_are_kept_once(tmp_path):
    shared = np.arange(6.0).reshape(3, 2)
    sums = {
        ("erasure", "area", "random"): Sums(shared, 5, 1, np.array([[0.5, 5.0]])),
        ("erasure", "efficiency", "random"): Sums(shared, 5),
        ("substitution", "accuracy", ""): Sums(np.array([[3.0]]), 7),
    }
    sample = pd.DataFrame({"key": [1], "id": ["a"]})
    SHARD.save(tmp_path, ShardFound({}, sums, sample, {"documents": 5, "notes": {}}))
    found = dict(sums_in(SHARD.load(tmp_path)))
    assert list(found) == list(sums)
    for key, one in sums.items():
        assert (found[key].n, found[key].undefined) == (one.n, one.undefined)
        np.testing.assert_array_equal(found[key].totals, one.totals)
    np.testing.assert_array_equal(found["erasure", "area", "random"].few, [[0.5, 5.0]])
    assert len(np.unique([len(one.totals) for one in found.values()])) == 2


def test_a_shard_without_audits_has_no_sums(tmp_path):
    SHARD.save(tmp_path, ShardFound({}, {}, pd.DataFrame({"id": []}), {"documents": 0}))
    assert not list(sums_in(tmp_path))


def test_the_first_by_key_are_taken_each_name_once():
    table = pd.DataFrame({"key": [5, -2, 5, 9], "id": ["b", "a", "b", "c"]})
    assert keys_of(table, 2).tolist() == [1, 0]
    assert keys_of(table, 9).tolist() == [1, 0, 3]
