"""One running service for all pages: each speaks of models of its own."""

from collections.abc import Iterator

import pytest

from tests.acceptance.running import Service, running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("pages")) as one:
        yield one
