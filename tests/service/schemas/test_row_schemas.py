"""The JSON Schema of a version says of every row whether it is answered: a validator and the service agree."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import jsonschema
import pytest
from hypothesis import strategies as st

import espalier
from service.settings import Settings
from tests.factories import ROOT
from tests.service.served import Served, serving

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["?", "NA", "", "a", "b", "1", "true", "x/y~z", "a\0", "\n"]),
    st.lists(st.integers(), max_size=1),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
)
COLUMNS: dict[str, dict[str, Any]] = {
    "number": {"kind": "numeric"},
    "text": {"kind": "nominal", "categories": ["a", "b", ""]},
    "coded": {"kind": "nominal", "categories": [1, 2, 2.5]},
    "both": {"kind": "nominal", "categories": [1, "1", True]},
    "order": {"kind": "ordinal", "categories": ["low", "high"]},
    "truth": {"kind": "boolean", "categories": [False, True]},
    "x/y~z": {"kind": "boolean", "categories": ["no", "yes"]},
    "empty": {"kind": "nominal", "categories": []},
    "passed over": {"kind": "nominal", "role": "ignore"},
    "heavy": {"kind": "numeric", "role": "weight"},
    "answer": {"kind": "nominal", "role": "target", "categories": ["a", "b"]},
}


def model(missing_values: list[str]) -> espalier.Model:
    declared = [{"name": name, **column} for name, column in COLUMNS.items()]
    known = ({"number": n, "text": "ab"[n % 2], "answer": "ab"[n % 2], "heavy": 1} for n in range(4))
    rows = [dict.fromkeys(COLUMNS) | row for row in known]
    return espalier.train(
        espalier.dataset_from_rows(rows, schema={"columns": declared, "missing_values": missing_values}), "cart"
    )


@pytest.fixture(scope="module")
def served(shared_sqlite: Settings) -> Iterator[Served]:
    with serving(shared_sqlite) as one:
        one.keep("signs", model(["?", "NA"]))
        one.keep("plain", model([]))
        one.train("drugs", (ROOT / "service" / "examples" / "drug200.csv").read_text(), preset="cart", target="Drug")
        one.train("days", "day,y\n2024-01-01,1\n2024-02-01T10:00:00Z,2\n", preset="cart", target="y")
        yield one


def schema_of(served: Served, name: str) -> dict[str, Any]:
    response = served.client.get(f"/v1/models/{name}/versions/1/schema")
    assert (response.status_code, response.content_type) == (200, "application/json")
    found: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    return found


def is_answered(served: Served, name: str, row: object) -> bool:
    response = served.post(f"/v1/models/{name}/predict", {"rows": [row], "explain": "none"})
    assert response.status_code in (200, 422), response.text
    return response.status_code == 200


@pytest.mark.parametrize("name", ["signs", "plain"])
def test_a_row_fits_exactly_if_it_is_answered(served: Served, name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(served, name))

    @hypothesis.settings(max_examples=150)
    @hypothesis.given(st.dictionaries(st.sampled_from([*COLUMNS, "other"]), CELLS, max_size=3))
    def agree(row: dict[str, Any]) -> None:
        assert validator.is_valid(row) == is_answered(served, name, row)

    agree()


def test_the_rows_that_were_learned_from_fit(served: Served) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(served, "drugs"))
    csv = (ROOT / "service" / "examples" / "drug200.csv").read_text()
    data = espalier.dataset_from_csv(csv, target="Drug")
    rows = espalier.rows_from_csv(data.schema, csv)
    assert len(rows) == 200
    assert not [row for row in rows if not validator.is_valid(row)]
    assert [error.json_path for error in validator.iter_errors(rows[0] | {"Age": "old"})] == ["$.Age"]


def test_categories_stand_as_examples_in_their_order(served: Served) -> None:
    found = schema_of(served, "signs")["properties"]
    assert found["order"]["examples"] == ["low", "high"]
    assert found["both"]["examples"] == [1, "1", True]
    assert "examples" not in found["number"]


def test_a_text_with_nul_characters_does_not_fit_and_is_refused(served: Served) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(served, "signs"))
    for name in ("text", "both", "order", "x/y~z", "empty"):
        assert validator.is_valid({name: "a\n"})
        assert is_answered(served, "signs", {name: "a\n"})
        assert not validator.is_valid({name: "a\0"})
        assert not is_answered(served, "signs", {name: "a\0"})


def test_a_date_is_text_whatever_it_says(served: Served) -> None:
    cell = jsonschema.Draft202012Validator(schema_of(served, "days"))
    assert cell.is_valid({"day": "2024-05-05"})
    assert not cell.is_valid({"day": 2024})


def test_what_is_not_there_has_no_schema(served: Served) -> None:
    assert served.client.get("/v1/models/drugs/versions/2/schema").status_code == 404
