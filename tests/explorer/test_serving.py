"""Where the server listens, and what the terminal says of it."""

import pytest

from heedful.errors import InputError
from heedful.explorer.safety import Door
from heedful.explorer.serving import address_of, listen


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
