import pytest

from tests.elsewhere.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_line_that_is_made_wrong_is_there_once(mutation: Mutation) -> None:
    text = (ROOT / "src" / "heedful" / mutation.file).read_text()
    assert text.count(mutation.right) == 1
