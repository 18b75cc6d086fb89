"""Steps and their results: names here, the rest in `test_reproduce` as a study meets it."""

from heedful.reproduction.results import named


def test_names_are_safe_on_every_file_system() -> None:
    assert named("imdb:stars", "bilstm*2+additive@10", 0) == "imdb-stars/bilstm-2+additive-10/0"
    assert named("..", "a/b") == "-/a-b"
