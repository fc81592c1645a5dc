"""The form of a data set's declaration, if categories or texts for missing values are odd."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import espalier
from service.web import datasets
from tests.service.web.browser import Browser, Structure, faults_of, text_of
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


def test_the_form_that_a_refused_deletion_shows_changes_the_declaration(visitor: Browser) -> None:
    page = upload(visitor, target="PlayTennis")
    job = visitor.change("/train", model="t", dataset=page.split("/")[2])
    html = visitor.refused(f"{page}/delete", status=409)
    visitor.change(f"{job}/cancel")
    form = re.search(r'<form[^>]*aria-labelledby="understood"', html)
    assert form
    action = re.search(r'action="/ui([^"]*)"', form[0])
    visitor.change(action[1] if action else f"{page}/delete", target="4", **{"role-3": "ignore"})
    assert declared(visitor, page).features[3].role is espalier.Role.IGNORE


def test_values_that_a_page_shows_again_are_not_saved_over_a_change_made_meanwhile(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = upload(visitor, target="PlayTennis")
    redeclared = datasets.redeclared_data_set

    @contextmanager
    def while_another_changes(*arguments: Any, **options: Any) -> Iterator[Any]:
        with redeclared(*arguments, **options) as new:
            monkeypatch.undo()
            visitor.change(page, target="4", **{"role-1": "ignore"})
            yield new

    shown = fingerprint_in(visitor.get(page))
    monkeypatch.setattr(datasets, "redeclared_data_set", while_another_changes)
    html = visitor.refused(page, status=409, target="4", fingerprint=shown, **{"role-3": "ignore"})
    assert fingerprint_in(html) == shown
    visitor.refused(page, status=412, target="4", fingerprint=shown, **{"role-3": "ignore"})
    roles = [feature.role for feature in declared(visitor, page).features]
    assert (roles[1], roles[3]) == (espalier.Role.IGNORE, espalier.Role.ATTRIBUTE)


def fingerprint_in(html: str) -> str:
    found = re.search(r'name="fingerprint" value="([^"]*)"', html)
    assert found
    return found[1]


def test_the_columns_of_other_pages_are_reached_from_a_refused_deletion(visitor: Browser) -> None:
    names = [f"c{place}" for place in range(150)]
    page = upload(visitor, f"{','.join(names)}\n{','.join('1' * 150)}\n{','.join('2' * 150)}\n", target="c0")
    visitor.change("/train", model="t", dataset=page.split("/")[2])
    html = visitor.refused(f"{page}/delete", status=409)
    link = re.search(r'href="/ui([^"]*)">later columns', html)
    assert link
    assert 'name="kind-149"' in visitor.get(link[1])


def test_a_form_from_before_another_change_undoes_nothing(visitor: Browser) -> None:
    page = upload(visitor, "a,b,y\nlow,u,p\nmid,v,q\nhigh,u,p\n", target="y")
    hidden = Structure(visitor.get(page)).values
    order = {"kind-0": "ordinal", "order-0": "low\r\nmid\r\nhigh"}
    visitor.change(page, **{**hidden, "target": "2", **order})
    old = {"kind-0": "nominal", "order-0": "high\r\nlow\r\nmid"}
    html = visitor.refused(page, status=412, **{**hidden, "target": "2", **old, "role-1": "ignore"})
    assert "has changed since this page was opened" in text_of(html)
    first, second, _ = declared(visitor, page).features
    assert (first.categories, second.role) == (("low", "mid", "high"), espalier.Role.ATTRIBUTE)
    # The form now shows the changed declaration, so it can be sent.
    assert "low\nmid\nhigh" in html
    visitor.change(page, **{**Structure(html).values, "target": "2", **order, "role-1": "ignore"})
    first, second, _ = declared(visitor, page).features
    assert (first.categories, second.role) == (("low", "mid", "high"), espalier.Role.IGNORE)


@pytest.mark.parametrize("target", ["2", "-1", "x", "99"])
def test_a_target_that_is_no_column_is_refused_and_the_target_stays(visitor: Browser, target: str) -> None:
    page = upload(visitor, "a,y\n1,p\n2,q\n", target="y")
    html = visitor.refused(page, target=target)
    assert "must be one of the columns, or none" in faults_of(html, "target")
    assert '<option value="1" selected>y</option>' in html
    assert declared(visitor, page).features[1].role is espalier.Role.TARGET
    visitor.change(page, target="")
    assert declared(visitor, page).target is None
