from contextlib import ExitStack

import pytest

from helpers.clusters import Crew


@pytest.fixture(scope="session")
def crew(tmp_path_factory):
    """The cluster of all tests; ``crew.with_workers(n)`` replaces workers that earlier tests killed."""
    with ExitStack() as stack:
        yield Crew(stack, tmp_path_factory.mktemp("cluster"))


@pytest.fixture
def client(crew):
    """A client of two workers."""
    return crew.with_workers(2)
