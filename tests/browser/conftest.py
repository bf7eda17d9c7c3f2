import os

import pytest

from helpers.chromium import chromium, what_is_missing


def pytest_ignore_collect(collection_path, config):
    """Leave these tests alone unless they are asked for by ``-m browser``."""
    return True if "browser" not in config.getoption("markexpr", "") else None


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads):
    if (missing := what_is_missing()) is not None:
        if os.environ.get("FILLRANK_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    with chromium(downloads=downloads) as driver:
        yield driver
