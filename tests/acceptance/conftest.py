"""One running service for the stories of a file that only add to it; a story that kills or counts runs its own.

Where ESPALIER_TEST_IMAGE names the address of a started image, the stories are told to it. Its first key is
ESPALIER_TEST_KEY, or the one that it printed into the file CONTAINER_LOG.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance.running import Service, running, until

IMAGE = os.environ.get("ESPALIER_TEST_IMAGE")


# An idle service polls for jobs, so that it must not run until the last test.
@pytest.fixture(scope="module")
def running_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    if IMAGE is not None:
        yield request.getfixturevalue("image")
        return
    with running(tmp_path_factory.mktemp("service"), has_tables=False) as one:  # as a user's first start
        yield one


@pytest.fixture(scope="session")
def image() -> Iterator[Service]:
    """The started image, and its first key."""
    if IMAGE is None:
        pytest.skip("ESPALIER_TEST_IMAGE names no started image")
    until(lambda: answers(f"{IMAGE}/readyz"), what="the start of the image")
    key = os.environ.get("ESPALIER_TEST_KEY")
    if key is None:
        [key] = re.findall(r"esp_[0-9a-f-]{36}_\S{43,}", Path(os.environ["CONTAINER_LOG"]).read_text())
    one = Service(IMAGE, key)
    yield one
    one.client.close()


def answers(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.TransportError:
        return False
