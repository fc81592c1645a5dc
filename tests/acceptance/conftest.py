"""One running service for all stories that only add to it; a story that kills or counts runs its own."""

from collections.abc import Iterator

import pytest

from tests.acceptance.running import Running, running


@pytest.fixture(scope="session")
def running_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as one:
        yield one
