"""The page of a decision: numbers as they are, and reasons that are true."""

import re

import pytest

from service.repositories import decisions
from tests.service.web.browser import Browser, text_of

PRICES = "size,price\n1,2253448.59\n2,2253448.59\n10,12.5\n11,12.5\n"


def decided(visitor: Browser, name: str, row: dict[str, object]) -> str:
    answer = visitor.served.predict(name, {"rows": [row]})
    return f"/decisions/{answer['predictions'][0]['decision_id']}"


def test_the_numbers_of_a_regression_are_shown_with_all_digits(visitor: Browser) -> None:
    visitor.served.train("prices", PRICES, target="price", preset="cart")
    assert '<p class="answer">2253448.59</p>' in visitor.send("/models/prices/try", {"v-0": "1"}).text
    page = decided(visitor, "prices", {"size": 11})
    assert "gives 2253448.59 " in text_of(visitor.get(f"{page}/counterfactuals?low=2000000"))
    visitor.change(f"{page}/outcome", outcome="1234567.891")
    assert "True outcome: 1234567.891 " in text_of(visitor.get(page))
    assert "Still possible: 12.5 to 2253448.59." in text_of(visitor.get("/models/prices/consultation"))


def test_a_search_that_a_missing_value_limits_says_so(visitor: Browser) -> None:
    visitor.served.train("tennis", preset="c45")
    text = text_of(visitor.get(f"{decided(visitor, 'tennis', {'Wind': 'Weak'})}/counterfactuals"))
    assert "Other changes may exist" in text
    assert "or a missing or unseen value may divide the row" in text


def test_a_search_without_a_find_is_only_final_if_it_is_complete(visitor: Browser) -> None:
    visitor.served.train("tennis", preset="c45")
    keep = "&".join(f"keep={name}" for name in ("Outlook", "Temperature", "Humidity", "Wind"))
    for row, is_complete in (({"Outlook": "Overcast", "Humidity": "High", "Wind": "Weak"}, True), ({}, False)):
        text = text_of(visitor.get(f"{decided(visitor, 'tennis', row)}/counterfactuals?{keep}"))
        assert ("No change of the row leads there" in text) == is_complete
        assert ("No change was found" in text) != is_complete


def test_a_fault_of_the_outcome_leads_to_its_field_and_stands_there_alone(visitor: Browser) -> None:
    visitor.served.train("tennis")
    page = decided(visitor, "tennis", {"Outlook": "Sunny", "Humidity": "High"})
    html = visitor.refused(f"{page}/outcome", outcome="Maybe")
    [link] = re.findall(r'href="#(at[^"]*)"', html)
    assert re.search(rf'<input\s+id="{link}"\s+name="outcome"', html)
    assert html.count("must be one of the model&#39;s classes") == 2  # in the list of faults, and at the field


def test_a_long_class_is_offered_in_full(visitor: Browser) -> None:
    long = "L" * 130
    visitor.served.train("long", f"a,y\np,{long}\np,{long}\nq,s\nq,s\n", target="y")
    page = decided(visitor, "long", {"a": "q"})
    for words in re.findall(r"<datalist.*?</datalist>", visitor.get(page), re.DOTALL):
        assert re.findall(r'<option value="([^"]*)"', words) == [long, "s"]
    assert "p</strong>" in visitor.get(f"{page}/counterfactuals?label={long}")
    visitor.change(f"{page}/outcome", outcome=long)


def test_a_search_that_stopped_early_does_not_say_that_there_is_no_such_decision(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.served.train("tennis")
    decided(visitor, "tennis", {"Outlook": "Overcast"})
    decided(visitor, "tennis", {"Outlook": "Sunny", "Humidity": "High"})
    monkeypatch.setattr(decisions, "MAX_ROWS_A_PAGE", 1)
    for _ in range(2):
        visitor.served.predict("tennis", {"rows": [{"Outlook": "Sunny", "Humidity": "High"}] * 2})
    html = visitor.get("/decisions?label=Yes")
    assert "No decision like this among the newest" in text_of(html)
    for _ in range(3):
        older = re.search(r'href="/ui([^"]*)">Older ones', html)
        assert older
        html = visitor.get(older[1].replace("&amp;", "&"))
        if "<td>Yes</td>" in html:
            return
    raise AssertionError(text_of(html))


def test_the_whole_rule_of_a_decision_is_shown_even_if_it_is_long(visitor: Browser) -> None:
    cities = [f"city {n:03}" for n in range(300)]
    csv = "city,y\n" + "".join(f"{city},{'yes' if n % 2 else 'no'}\n" for n, city in enumerate(cities))
    visitor.served.train("cities", csv, target="y", preset="cart")
    rule = f"if city is {' or '.join(cities[1::2])} then yes"
    assert len(rule) > 1_800
    page = decided(visitor, "cities", {"city": "city 001"})
    assert rule in text_of(visitor.get(page))
    assert rule in text_of(visitor.send("/models/cities/try", {"v-0": "city 001"}).text)


def test_a_rule_of_one_of_several_paths_says_so_and_names_the_missing_values(visitor: Browser) -> None:
    # Without Outlook, a row takes three branches. Below Sunny, the missing humidity divides it again; below Rain, the
    # wind is known.
    visitor.served.train("tennis", preset="c45")
    places = {"Outlook": 0, "Temperature": 1, "Humidity": 2, "Wind": 3}
    tried = visitor.send("/models/tennis/try", {f"v-{places['Wind']}": "1"}).text
    page = re.search(r'href="/ui(/decisions/[^"]*)"', tried)
    assert page
    for text in (text_of(tried), text_of(visitor.get(page[1]))):
        assert "The row takes 4 paths" in text
        assert " missing Outlook, Temperature, Humidity " in text
    text = text_of(visitor.get(decided(visitor, "tennis", {"Outlook": "Overcast"})))
    assert "The row takes" not in text
