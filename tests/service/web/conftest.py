"""A service with models of every kind, and a browser at it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import espalier
from service.settings import Settings
from tests.service.served import HOURS, TENNIS, Served, serving
from tests.service.web.browser import Browser


@dataclass(frozen=True)
class Site:
    """What is there: the ids of a data set, of a decision, of a job."""

    browser: Browser
    served: Served
    data_set: str
    decision: str
    job: str


@pytest.fixture
def visitor(on_sqlite: Settings) -> Iterator[Browser]:
    with serving(on_sqlite) as served:
        yield Browser(served)


@pytest.fixture(scope="module")
def site(shared_sqlite: Settings) -> Iterator[Site]:
    with serving(shared_sqlite) as served:
        data_set = served.train("tennis", holdout={"fraction": 0.3, "seed": 1})
        served.train("tennis", preset="cart")
        served.train("hours", HOURS, target="hours", preset="cart")
        served.train("linear", HOURS, target="hours", preset="m5")
        tree = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
        served.keep("rules", espalier.extract_rules(tree))
        answer = served.predict("tennis", {"rows": [{"Outlook": "Sunny", "Humidity": "High"}], "subject": "jane"})
        browser = Browser(served)
        job = browser.change("/train", model="tennis", dataset=data_set, preset="id3").removeprefix("/jobs/")
        yield Site(browser, served, data_set, answer["predictions"][0]["decision_id"], job)
