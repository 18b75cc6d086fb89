"""`heedful corpora` and what the JSON of it has."""

from typer.testing import CliRunner

from heedful.cli import app
from tests.schemas import conforms


def test_corpora_lists_what_is_here_and_where_the_rest_comes_from() -> None:
    rows = conforms("corpora", CliRunner().invoke(app, ["corpora", "--json"]).stdout)
    by_name = {row["name"]: row for row in rows}
    assert by_name["planted"]["is_present"]
    assert {"sst", "imdb", "ag_news", "20newsgroups", "sms"} <= set(by_name)
    assert "missing" in by_name["yelp_full"]
    assert "planted" in CliRunner().invoke(app, ["corpora"]).stdout
