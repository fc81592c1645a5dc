"""Try a model: the figures of an answer add up, and a fault leads to its field."""

import re
from dataclasses import replace

import pytest

from service.database.tables import Scope
from service.settings import Settings
from service.web import predictions
from tests.service.guarded import token_of
from tests.service.served import serving
from tests.service.web.browser import Browser, Structure, log_in, text_of

# Tree: a is p -> no; a is q: b is r -> no, b is s -> yes. Of ten rows, six have a = p, and two are yes.
TWO_TESTS = "a,b,y\n" + "p,r,no\n" * 3 + "p,s,no\n" * 3 + "q,r,no\n" * 2 + "q,s,yes\n" * 2
AWKWARD = ("x", "a b", "a_b", 'a/"b~')
FLAT = '"x","a b","a_b","a/""b~",y\n' + "".join(f"{n},1,1,1,{'no' if n < 5 else 'yes'}\n" for n in range(10))


@pytest.fixture
def flat(visitor: Browser) -> Browser:
    """A browser at a model whose tree tests x alone, of four numeric attributes."""
    visitor.served.train("flat", FLAT, target="y", preset="cart", missing_values=["?"])
    return visitor


def test_an_attribute_off_the_path_has_its_shapley_value(visitor: Browser) -> None:
    # For p and s, with v the share of "no": v() = 0.8, v(a) = 1, v(b) = 0.6 * 1 + 0.4 * 0 = 0.6, v(a, b) = 1. So a has
    # ((1 - 0.8) + (1 - 0.6)) / 2 = 0.3, and b ((0.6 - 0.8) + (1 - 1)) / 2 = -0.1. The path tests a alone: 1 - 0.8.
    visitor.served.train("two", TWO_TESTS, target="y")
    text = text_of(visitor.send("/models/two/try", {"v-0": "0", "v-1": "1"}).text)
    assert "Baseline 0.8 0.8 a 0.2 0.3 b – -0.1" in text


def test_the_attributes_that_are_not_listed_are_summed(visitor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "MAX_CONTRIBUTIONS", 1)
    visitor.served.train("two", TWO_TESTS, target="y")
    text = text_of(visitor.send("/models/two/try", {"v-0": "0", "v-1": "1"}).text)
    assert "Baseline 0.8 0.8 a 0.2 0.3 1 other attribute 0 -0.1" in text


def test_the_largest_contribution_comes_first(visitor: Browser) -> None:
    # For q and r, v(a) = 0.5, v(b) = 1, v(a, b) = 1: a has ((0.5 - 0.8) + 0) / 2 = -0.15, b (0.2 + 0.5) / 2 = 0.35.
    visitor.served.train("two", TWO_TESTS, target="y")
    text = text_of(visitor.send("/models/two/try", {"v-0": "1", "v-1": "0"}).text)
    assert "Baseline 0.8 0.8 b 0.5 0.35 a -0.3 -0.15" in text


@pytest.mark.parametrize("place", range(len(AWKWARD)))
def test_the_link_of_a_fault_leads_to_its_field_alone(flat: Browser, place: int) -> None:
    html = flat.refused("/models/flat/try", **{f"v-{place}": "twelve"})
    [link] = re.findall(r'href="#(at[^"]*)"', html)
    assert Structure(html).ids.count(link) == 1
    assert re.search(rf'<input\s+id="{re.escape(link)}"\s+name="v-{place}"', html)


def test_a_fault_of_a_field_that_was_folded_unfolds_it(flat: Browser) -> None:
    assert "<details>" in flat.get("/models/flat/try")
    assert "<details open>" in flat.refused("/models/flat/try", **{"v-1": "twelve"})


def test_the_link_of_a_fault_in_a_consultation_leads_to_its_field(flat: Browser) -> None:
    html = flat.refused("/models/flat/consultation", **{"known": "{}", "place": "0", "v-0": "twelve"})
    [link] = re.findall(r'href="#(at[^"]*)"', html)
    assert link in Structure(html).ids


@pytest.mark.parametrize("text", ["null", " null ", ""])
def test_null_is_a_missing_value_as_the_fault_of_a_number_says(flat: Browser, text: str) -> None:
    assert "or null for missing" in text_of(flat.refused("/models/flat/try", **{"v-0": "twelve"}))
    response = flat.send("/models/flat/try", {"v-0": text, "v-1": "1", "v-2": "1", "v-3": "1"})
    assert response.status_code == 200
    assert " missing x " in text_of(response.text)


def test_a_row_that_was_typed_for_another_version_is_not_decided(visitor: Browser) -> None:
    # The second version has the attributes in another order: the fields of the first one would be those of the other.
    visitor.served.train("two", TWO_TESTS, target="y")
    shown = Structure(visitor.get("/models/two/try")).values.get("shown", "")
    fields = {"v-0": "1", "v-1": "0", "subject": "jane"}  # a is q, b is r
    visitor.served.train("two", "b,a,y\n" + "s,p,no\n" * 3 + "r,q,yes\n" * 3, target="y")
    html = visitor.refused("/models/two/try", status=412, **{"shown": shown, **fields})
    assert "version 2 answers since this page was opened" in text_of(html)
    assert 'class="answer"' not in html
    assert visitor.served.client.get("/v1/decisions?subject=jane").json["items"] == []
    again = Structure(html).values
    assert (again["shown"], again["subject"]) == ("2", "jane")
    assert html.partition('name="v-0"')[2].partition(" selected>")[2].startswith("missing<")
    answer = visitor.send("/models/two/try", {"shown": again["shown"], "v-0": "0", "v-1": "1"})
    assert '<p class="answer">yes</p>' in answer.text


@pytest.mark.parametrize("page", ["try", "consultation"])
def test_a_page_for_predictions_has_no_link_that_its_key_may_not_open(on_sqlite: Settings, page: str) -> None:
    with serving(on_sqlite, auth="keys") as served:
        served.train("two", TWO_TESTS, target="y")
        browser = Browser(served)
        log_in(browser, token_of(served, Scope.PREDICT))
        links = [one for one in Structure(browser.get(f"/models/two/{page}")).addresses if one.startswith("/ui/")]
        refused = [one for one in links if browser.client.get(one).status_code == 403]
        assert refused == []


def test_a_cut_list_of_possible_answers_says_how_many_more_there_are(visitor: Browser) -> None:
    visitor.served.train("many", "a,y\n" + "".join(f"v{n:02},c{n:02}\n" * 2 for n in range(14)), target="y")
    text = text_of(visitor.get("/models/many/consultation"))
    assert "c11: 2 training rows and 2 more " in text
    assert "c12" not in text


def test_the_nearest_change_is_searched_only_where_a_class_and_the_whole_row_are_known(visitor: Browser) -> None:
    visitor.served.train("two", TWO_TESTS, target="y")
    visitor.served.train("sizes", "a,y\n1,1.5\n2,1.5\n3,4\n4,4\n", target="y", preset="cart")
    for name, mask, expected in (("two", [], True), ("sizes", [], False), ("two", ["a"], False)):
        assert visitor.served.client.patch("/v1/models/two", json={"mask": mask}).status_code == 200
        html = visitor.send(f"/models/{name}/try", {"v-0": "1"}).text
        assert 'class="answer"' in html
        assert ("/counterfactuals" in html) == expected, (name, mask)


def test_a_consultation_of_a_named_version_begins_again_with_this_version(visitor: Browser) -> None:
    for _ in range(2):
        visitor.served.train("two", TWO_TESTS, target="y")
    for query, again in (("?version=1", "?version=1"), ("", "")):
        asked = Structure(visitor.get(f"/models/two/consultation{query}")).values
        html = visitor.send("/models/two/consultation", {**asked, "v-0": "0"}).text
        assert "Decide and log it" in html
        assert f'href="/ui/models/two/consultation{again}">Begin again' in html


def test_a_row_is_answered_if_the_settings_allow_no_full_explanation(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.served.train("two", TWO_TESTS, target="y")  # two tests and three leaves
    service = visitor.served.service
    for limit, has_contributions in ((5, True), (4, False)):
        monkeypatch.setattr(service, "settings", replace(service.settings, max_full_nodes=limit))
        monkeypatch.setattr(service, "recorder", replace(service.recorder, settings=service.settings))
        response = visitor.send("/models/two/try", {"v-0": "1", "v-1": "0"})
        assert response.status_code == 200, text_of(response.text)
        assert ("Baseline" in response.text) == has_contributions
