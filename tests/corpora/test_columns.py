"""Which column holds what, where the user named them."""

import pytest

from heedful.corpora.columns import find_columns
from heedful.errors import InputError


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"text": "a", "label": "a"}, "column 'a' was named for the text and the label"),
        ({"text": "a", "second": "a", "label": "b"}, "'a' was named for the text and the second"),
        ({"label": "b", "split": "b"}, "column 'b' was named for the label and the split"),
    ],
)
def test_one_column_is_not_read_as_two_things(named: dict[str, str], said: str) -> None:
    table = {"a": ["good food", "bad food"], "b": ["x", "y"]}
    with pytest.raises(InputError, match=f"rows.csv: .*{said}; name another one"):
        find_columns(table, "rows.csv", **named)  # type: ignore[arg-type]
