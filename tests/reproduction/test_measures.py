"""Statistics of claims from rows of several seeds."""

import pandas as pd
import pytest

from heedful.reproduction.measures import average


def test_instances_that_one_seed_lacks_are_undefined() -> None:
    first = pd.DataFrame({"instance": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    second = pd.DataFrame({"instance": ["b", "a"], "x": [4.0, 3.0]})
    found = average([first, second], "x")
    assert (found.value, found.n, found.undefined) == (2.5, 2, 1)
    with pytest.raises(ValueError, match="several rows per instance"):
        average([pd.concat([first, first])], "x")
