"""A running service for the pages; each page has its own models.

It ends when a file of another folder is next: an idle service polls for jobs.
"""

from collections.abc import Iterator

import pytest

from tests.acceptance.running import Service, running
from tests.documentation.pages import TENNIS


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("pages")) as one:
        yield one


@pytest.fixture(scope="package")
def tennis(service: Service) -> bytes:
    """Return the document of the model that the pages call play-tennis."""
    service.train("play-tennis", service.upload(TENNIS.read_bytes(), target="PlayTennis"), preset="id3")
    return service.client.get("/v1/models/play-tennis/versions/1/document").content
