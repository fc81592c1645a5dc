"""Exported queries answer as the model does: run by SQLite, DuckDB and PostgreSQL."""

import math
import os
import re
import sqlite3

import duckdb
import psycopg
import pyarrow
import pytest
from hypothesis import given, settings, strategies as st

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from tests.core.export.consumers import same
from tests.core.export.models import REFERENCE_MODELS, alias_model, hostile_model, large_model, reference_model
from tests.core.export.rows import boundary_rows
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Leaf, mixed_rows, plant, roots
from tests.factories import needs_reference

POSTGRES = os.environ.get("ESPALIER_TEST_POSTGRES_URL", "").replace("postgresql+psycopg://", "postgresql://")
ENGINES = [
    "sqlite",
    "duckdb",
    pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="ESPALIER_TEST_POSTGRES_URL is not set")),
]
CONNECTIONS = {
    "sqlite": lambda: sqlite3.connect(":memory:"),
    "duckdb": duckdb.connect,
    "postgres": lambda: psycopg.connect(POSTGRES),
}
TYPES = {
    "sqlite": {"number": "REAL", "text": "TEXT", "bool": "BOOLEAN"},
    "duckdb": {"number": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN"},
    "postgres": {"number": "DOUBLE PRECISION", "text": "TEXT", "bool": "BOOLEAN"},
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def column_type(engine: str, feature: Feature) -> str:
    if not feature.coded or all(isinstance(label, int | float) for label in feature.categories):
        return TYPES[engine]["bool" if feature.kind is FeatureKind.BOOLEAN else "number"]
    return TYPES[engine]["text"]


def answers(engine: str, model: Model, rows: list[dict], query: str) -> list[tuple]:
    """Return (label or value, leaf, probability) of each row, by a real engine."""
    attributes = model.schema.attributes
    columns = ", ".join(f"{quoted(each.name)} {column_type(engine, each)}" for each in attributes)
    create = f'CREATE TEMP TABLE "rows" (espalier_place INTEGER, {columns})'
    cells = [(at, *(row.get(each.name) for each in attributes)) for at, row in enumerate(rows)]
    marks = ", ".join(["%s" if engine == "postgres" else "?"] * (len(attributes) + 1))
    connection = CONNECTIONS[engine]()
    try:
        cursor = connection if engine == "duckdb" else connection.cursor()
        cursor.execute(create)
        if engine == "duckdb":  # takes rows one by one slowly, and a table at once
            names = [f"c{at}" for at in range(len(attributes) + 1)]
            table = pyarrow.table([list(column) for column in zip(*cells, strict=True)], names=names)
            connection.register("given", table)
            connection.execute('INSERT INTO "rows" FROM given')
        else:
            cursor.executemany(f'INSERT INTO "rows" VALUES ({marks})', cells)  # noqa: S608 - marks only
        cursor.execute(query)
        names = [each[0] for each in cursor.description]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    finally:
        connection.close()
    found.sort(key=lambda row: row["espalier_place"])
    answer = "espalier_label" if model.schema.classes else "espalier_value"
    return [
        (row[answer], row["espalier_leaf"], row.get("espalier_probability"), row.get("espalier_rule")) for row in found
    ]


def check(engine: str, model: Model, rows: list[dict] | None = None, *, texts: bool = True, **options) -> None:
    rows = boundary_rows(model) if rows is None else rows
    query = espalier.export_model(model, f"sql-{engine}", rule_text=texts, **options)
    answering = espalier.with_missing_strategy(model, options.get("missing"))
    predictions = espalier.predict(answering, rows)
    found = answers(engine, model, rows, query)
    assert len(found) == len(predictions)
    for (answer, leaf, probability, rule), each, row in zip(found, predictions, rows, strict=True):
        assert leaf == each.leaf, row
        assert same(answer, each.value if each.label is None else each.label), row
        if each.label is not None:
            assert math.isclose(probability, dict(each.distribution)[each.label], abs_tol=1e-12), row
        assert not texts or rule == espalier.rule_of(answering, espalier.leaf_prediction(answering, leaf))


def options_of(model: Model) -> dict[str, str]:
    return {} if espalier.applicable_exports(model)["sql-sqlite"] is None else {"missing": "majority"}


@needs_reference
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_every_row_of_a_table_gets_the_answer_of_the_model(name, engine) -> None:
    model = reference_model(name)
    check(engine, model, **options_of(model))


@needs_reference
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["labor j48", "labor imputed", "iris cart"])
def test_a_list_of_rules_answers_by_its_first_rule_that_holds(name, engine) -> None:
    check(engine, espalier.extract_rules(reference_model(name)))


@pytest.mark.parametrize("engine", ENGINES)
def test_names_are_identifiers_and_never_code(engine) -> None:
    check(engine, hostile_model())


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "duckdb"])
def test_five_thousand_leaves_are_one_query(engine) -> None:
    check(engine, large_model(), boundary_rows(large_model(), n_rows=20)[:40], texts=False)


def test_five_hundred_leaves_are_one_query_in_duckdb() -> None:
    """It plans a CASE in a time that grows by the square of its branches."""
    check("duckdb", large_model(500), boundary_rows(large_model(500), n_rows=20)[:40], texts=False)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=10)
@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]))
def test_any_tree_answers_alike(engine, data, schema) -> None:
    model = plant(schema, data.draw(roots(schema)))
    rows = data.draw(st.lists(mixed_rows(), min_size=1)) + boundary_rows(model, n_rows=20)
    check(engine, model, rows, **options_of(model))


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_nan_is_missing_and_not_the_greatest_number(engine) -> None:
    for fallback in (0, 1):
        check(engine, plant(MIXED, Cut(0, 0.5, (A, B), fallback)), [{"length": math.nan}, {"length": 1.0}, {}])


def test_thresholds_are_not_rounded_to_the_32_bits_of_a_column() -> None:
    model = plant(MIXED, Cut(0, 0.1, (A, Cut(0, 0.2, (B, C), 0)), 0))
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "rows" (length FLOAT, colour VARCHAR, size VARCHAR, sold BOOLEAN)')
    connection.execute('INSERT INTO "rows" (length) VALUES (0.1), (0.2), (0.3)')
    found = connection.sql(espalier.export_model(model, "sql-duckdb")).fetchdf()
    expected = espalier.predict(model, [{"length": value} for value in found["length"].astype(float)])
    assert found["espalier_label"].tolist() == [each.label for each in expected]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("column", "threshold", "written"),
    [("BIGINT", 2.0**53, "9007199254740993"), ("NUMERIC(30, 25)", 0.1, "0.1000000000000000000001")],
)
def test_a_number_is_compared_as_its_double_whatever_the_type_of_its_column(engine, column, threshold, written) -> None:
    assert float(written) == threshold  # Espalier reads it so: it is not above the threshold
    connection = CONNECTIONS[engine]()
    cursor = connection.cursor()
    cursor.execute(f'CREATE TEMP TABLE "rows" (length {column}, colour TEXT, size TEXT, sold BOOLEAN)')
    cursor.execute(f'INSERT INTO "rows" (length) VALUES ({written})')  # noqa: S608 - one of two literals
    cursor.execute(espalier.export_model(plant(MIXED, Cut(0, threshold, (A, B), 1)), f"sql-{engine}"))
    found = dict(zip([each[0] for each in cursor.description], cursor.fetchone(), strict=True))
    connection.close()
    assert found["espalier_label"] == "a"


def test_a_number_is_compared_as_a_binary_double_in_oracle() -> None:
    """Oracle's DOUBLE PRECISION is a decimal of 38 digits."""
    query = espalier.export_model(plant(MIXED, Cut(0, 0.1, (A, B), 1)), "sql-oracle")
    assert 'CAST(t."length" AS BINARY_DOUBLE) <= 0.1' in query


def test_nan_is_missing_in_oracle_where_it_is_greater_than_every_number() -> None:
    query = espalier.export_model(plant(MIXED, Cut(0, 0.5, (A, B), 0)), "sql-oracle")
    column = 'CAST(t."length" AS BINARY_DOUBLE)'
    assert f"{column} > 0.5d AND {column} <= 1.7976931348623157e+308d THEN 2" in query
    assert f"{column} IS NULL OR NOT ({column} <= 1.7976931348623157e+308d)" in query


def test_values_of_oracle_are_binary_doubles() -> None:
    """Oracle's NUMBER ends below 1e126, and a literal is a NUMBER unless it ends in d."""
    table = espalier.dataset_from_columns({"a": [*range(40)], "y": [2.5 * at for at in range(40)]}, target="y")
    query = espalier.export_model(espalier.train(table, "m5"), "sql-oracle")
    assert "CAST(1e+150d AS BINARY_DOUBLE)" in query
    assert "DOUBLE PRECISION" not in query


NEAR = (19.88010610137834, 0.1392716085776078, 6.159142100146377e-18)
"""Doubles whose shortest texts SQLite 3.40 reads as a neighbouring double."""


@pytest.mark.parametrize("number", NEAR)
def test_sqlite_reads_a_threshold_and_a_value_exactly(number) -> None:
    check("sqlite", plant(MIXED, Cut(0, number, (A, B), 1)))
    check("sqlite", plant(MIXED, Cut(0, -number, (A, B), 1)))
    schema = Schema((Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NUMERIC, Role.TARGET)))
    leaves = (Leaf((1.0, number, 0.0)), Leaf((1.0, -number, 0.0)))
    query = espalier.export_model(plant(schema, Cut(0, 0.5, leaves, 1)), "sql-sqlite")
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "rows" (x REAL)')
    connection.execute('INSERT INTO "rows" VALUES (0.0), (1.0)')
    assert [row[-1] for row in connection.execute(query)] == [number, -number]
    connection.close()


def test_labels_that_are_numbers_keep_their_type_in_sqlite() -> None:
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, (1.0, 2.5, 3.0))
    schema = Schema((Feature("x", FeatureKind.NUMERIC), target))
    query = espalier.export_model(plant(schema, Cut(0, 0.5, (A, B), 1)), "sql-sqlite")
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "rows" (x REAL)')
    connection.execute('INSERT INTO "rows" VALUES (0.0), (1.0)')
    answers = connection.execute(query)
    place = [column[0] for column in answers.description].index("espalier_label")
    assert {type(row[place]) for row in answers} == {float}
    connection.close()


def test_texts_of_sql_server_are_unicode() -> None:
    """Without N, SQL Server converts a text to the code page of the database, in which both are ``??``."""
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c"))
    schema = Schema((Feature("x", FeatureKind.NOMINAL, categories=("\u65e5\u672c", "it's")), target))
    query = espalier.export_model(plant(schema, Ask(0, (0, 1), (A, B), 0)), "sql-tsql")
    assert "N'it''s'" in query
    assert not re.search(r"(?<![N'])'\w", query)


def test_truth_values_are_no_columns_of_sqlite() -> None:
    attributes = tuple(Feature(name, FeatureKind.BOOLEAN, categories=(False, True)) for name in ("a", "true", "FALSE"))
    model = plant(Schema((*attributes, MIXED.features[-1])), Ask(0, (0, 1), (A, B), 0))
    rows = [{"a": a, "true": not a, "FALSE": a} for a in (True, False)]
    check("sqlite", model, rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_that_means_missing_is_missing_in_a_query(engine) -> None:
    schema = Schema((Feature("x", FeatureKind.NUMERIC), *MIXED.features[1:]), missing_values=("-999",))
    check(engine, plant(schema, Cut(0, 0.5, (A, B), 1)), [{"x": -999.0}, {"x": -998.0}, {"x": 1.0}, {}])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_that_is_listed_as_missing_stands_for_no_category(engine) -> None:
    check(engine, alias_model(), [{"x": "1"}, {"x": "2"}, {"x": "2.0"}, {"x": "1.0"}, {}])


def test_a_list_of_categories_is_divided_at_the_limit_of_oracle() -> None:
    labels = tuple(f"v{code}" for code in range(2_500))
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c"))
    schema = Schema((Feature("x", FeatureKind.NOMINAL, categories=labels), target))
    model = plant(schema, Ask(0, tuple(int(code < 2_100) for code in range(2_500)), (A, B), 0))
    check("sqlite", model, [{"x": labels[code]} for code in (0, 999, 1_000, 2_099, 2_100, 2_499)])
    lists = re.findall(r" IN \(([^()]*)\)", espalier.export_model(model, "sql-oracle"))
    assert max(text.count(",") + 1 for text in lists) == 1_000


def test_many_numbers_that_mean_missing_are_divided_too() -> None:
    numeric = Schema(
        (Feature("x", FeatureKind.NUMERIC), *MIXED.features[1:]), missing_values=tuple(map(str, range(1_500)))
    )
    model = plant(numeric, Cut(0, 1_499.5, (A, B), 1))
    check("sqlite", model, [{"x": value} for value in (-1.0, 0.0, 999.0, 1_000.0, 1_499.0, 1_500.0, None)])
    lists = re.findall(r" IN \(([^()]*)\)", espalier.export_model(model, "sql-oracle"))
    assert max(text.count(",") + 1 for text in lists) == 1_000


@pytest.mark.parametrize("form", [form for form in espalier.EXPORTS if form.startswith("sql-")])
def test_each_dialect_quotes_names_and_has_no_nested_case(form) -> None:
    query = espalier.export_model(hostile_model(), form, table="shop.orders")
    body = query.partition("WITH")[2].upper()
    assert body.count("CASE") == 3  # leaf, label, probability
    assert "ORDERS" in body
    assert "DROP TABLE" not in query.replace("line; DROP TABLE rows", "")


@pytest.mark.parametrize("table", ["", "a..b", "a\0", "a\ud800"])
def test_a_table_whose_name_cannot_be_written_is_refused(table: str) -> None:
    with pytest.raises(espalier.ConfigError, match="table: must be a name"):
        espalier.export_model(hostile_model(), "sql-postgres", table=table)


def test_what_sql_cannot_express_is_refused_with_the_reason() -> None:
    mixed = Schema((Feature("x", FeatureKind.NOMINAL, categories=(1, "1", True)), MIXED.features[-1]))
    when = Schema((Feature("x", FeatureKind.DATETIME), MIXED.features[-1]))
    empty = Schema(
        (
            Feature("x", FeatureKind.NOMINAL, categories=("", "a", "a ")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c")),
        )
    )
    alike = Schema((Feature("Size", FeatureKind.NUMERIC), Feature("size", FeatureKind.NUMERIC), MIXED.features[-1]))
    for schema, form, reason in (
        (alike, "sql-sqlite", "differ only in case"),
        (alike, "sql-duckdb", "differ only in case"),
        (mixed, "sql-sqlite", "different types"),
        (when, "sql-sqlite", "seconds since 1970"),
        (empty, "sql-oracle", "empty text"),
        (empty, "sql-tsql", "spaces at the end"),
    ):
        root = Cut(0, 0.5, (A, B), 0) if schema in (when, alike) else Ask(0, (0, 1, 2), (A, B, C), 0)
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.export_model(plant(schema, root), form)
    divided = plant(MIXED, Cut(0, 0.5, (A, B), -1))
    with pytest.raises(espalier.NotApplicable, match="export with missing='majority'"):
        espalier.export_model(divided, "sql-duckdb")
