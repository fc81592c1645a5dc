"""The form of a data set's declaration, if categories or texts for missing values are odd."""

import pytest

from tests.service.web.browser import Browser
from tests.service.web.test_forms import declared, upload


def test_a_declaration_keeps_the_spaces_of_categories(visitor: Browser) -> None:
    page = upload(visitor, 'x,y\n" a",1\na,2\n b,3\n', target="y")
    assert declared(visitor, page).features[0].categories == (" a", " b", "a")
    visitor.change(page, **{"kind-0": "ordinal", "order-0": "a\r\n a\r\n b"})
    assert declared(visitor, page).features[0].categories == ("a", " a", " b")


@pytest.mark.parametrize("odd", ["", " ", "a\nb", "a\u2028b", "a\x0bb", "a\n"])
def test_a_page_that_is_saved_unchanged_changes_nothing(visitor: Browser, odd: str) -> None:
    rows = [{"a": odd, "b": "u", "y": "p"}, {"a": "c", "b": "v", "y": "q"}]
    table = {"rows": rows, "schema": {"missing_values": [" NA", "none"]}}
    response = visitor.client.post("/v1/datasets?target=y", json=table)
    assert response.status_code == 201, response.text
    page = f"/datasets/{response.get_json()['id']}"
    before = declared(visitor, page)
    assert odd in before.features[0].categories
    html = visitor.get(page)
    assert ('name="order-0"' in html, 'name="order-1"' in html) == (False, True)
    visitor.change(page, target="2", missing_values=" NA\r\nnone", **{"order-1": "u\r\nv"})
    assert declared(visitor, page) == before
    visitor.change(page, target="2", **{"order-1": "v\r\nu", "role-0": "ignore"})
    assert declared(visitor, page).features[1].categories == ("v", "u")
    assert declared(visitor, page).features[0].categories == before.features[0].categories


@pytest.mark.parametrize("odd", ["", " ", "a\nb", "NA\n"])
def test_texts_for_missing_that_are_not_one_line_are_left_to_the_api(visitor: Browser, odd: str) -> None:
    table = {"rows": [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}], "schema": {"missing_values": ["none", odd]}}
    page = f"/datasets/{visitor.client.post('/v1/datasets?target=y', json=table).get_json()['id']}"
    html = visitor.get(page)
    assert 'name="missing_values"' not in html
    assert "only the API can change them" in html
    visitor.change(page, target="1", **{"role-0": "ignore"})
    assert declared(visitor, page).missing_values == ("none", odd)
