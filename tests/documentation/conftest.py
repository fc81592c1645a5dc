"""One running service for all pages; each page uses models of its own."""

from collections.abc import Iterator

import pytest

from tests.acceptance.running import Service, running
from tests.documentation.pages import TENNIS


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("pages")) as one:
        yield one


@pytest.fixture(scope="session")
def tennis(service: Service) -> bytes:
    """Return the document of the model that the pages call play-tennis."""
    service.train("play-tennis", service.upload(TENNIS.read_bytes(), target="PlayTennis"), preset="id3")
    return service.client.get("/v1/models/play-tennis/versions/1/document").content
