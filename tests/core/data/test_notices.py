"""What a person is told of a table before it is trusted."""

import io

import pyarrow
import pytest

from espalier import (
    DataError,
    Notice,
    NoticedCell,
    dataset_from_arrow,
    dataset_from_columns,
    dataset_from_csv,
    predict,
    read_table,
    train,
)
from tests.written import WRITERS

N_ROWS = 400


def codes(dataset):
    return [(notice.code, notice.attribute) for notice in dataset.notices]


def columns_with(cell, *, at=17, n_rows=N_ROWS):
    """A column of distinct numbers as text, but for one cell."""
    texts = [str(row + 0.25) for row in range(n_rows)]
    texts[at] = cell
    return {"x": texts, "y": [["no", "yes"][row % 2] for row in range(n_rows)]}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("cell", ["nan", "N/A", "null", "-", " ", "inf", "unknown"])
def test_one_text_among_numbers_is_told_with_its_row_in_every_format(cell, name):
    form, _, write = WRITERS[name]
    if name == "ARFF":  # as a nominal attribute of its header, each number would be declared to be a category
        lines = [f"'{x}',{y}" for x, y in zip(*columns_with(cell).values(), strict=True)]
        content = "\n".join(["@relation r", "@attribute x string", "@attribute y {no,yes}", "@data", *lines]).encode()
    else:
        content = write(columns_with(cell))
    data = read_table(io.BytesIO(content), form, target="y")
    assert codes(data) == [("kind_against_majority", "x")]
    (notice,) = data.notices
    assert notice.cells == (NoticedCell(17, cell),)
    assert f"as 400 categories, though all of its 400 cells but 1 are numbers: {cell!r} in row 17" in str(notice)
    assert "missing_values" in str(notice)


@pytest.mark.parametrize(
    "declared", [{"missing_values": ["-"]}, {"schema": {"columns": [{"name": "x", "kind": "nominal"}]}}]
)
def test_what_is_declared_is_not_told(declared):
    told = codes(dataset_from_columns(columns_with("-"), target="y", **declared))
    assert told == ([] if "missing_values" in declared else [("identifier", "x")])


def test_the_declared_kind_refuses_the_cell():
    with pytest.raises(DataError, match=r"must be a finite number or missing: 1 cell \(row 17,"):
        dataset_from_columns(columns_with("-"), target="y", schema={"columns": [{"name": "x", "kind": "numeric"}]})


def test_words_are_numbers_against_the_majority_only_where_most_cells_are_numbers():
    # 1 of 3 cells, then 2 of 3, are numbers; rows count, not categories.
    for cells, is_told in ((["1", "a", "b"], False), (["1", "1", "b"], True), (["1", "2", "a", "b"], False)):
        told = codes(dataset_from_columns({"x": cells, "y": list("pqpq")[: len(cells)]}, target="y"))
        assert (("kind_against_majority", "x") in told) is is_told


def test_true_and_false_beside_a_text_are_told():
    data = dataset_from_columns({"x": [True, False, True, "maybe"], "y": [1, 2, 1, 2]}, target="y")
    assert data.notices[0].cells == (NoticedCell(3, "maybe"),)


def test_at_most_five_cells_are_shown_each_at_most_forty_characters():
    columns = {"x": [*map(str, range(20)), *["z" * 50] * 7], "y": [0, 1, 0] * 9}
    (notice,) = (each for each in dataset_from_columns(columns, target="y").notices if each.attribute == "x")
    assert [cell.row for cell in notice.cells] == [20, 21, 22, 23, 24]
    assert {cell.value for cell in notice.cells} == {"z" * 40 + "…"}
    assert "but 7 are numbers" in notice.message


@pytest.mark.parametrize("word", ["", " ", "-", "NaN", "n/a", "NULL"])
def test_a_category_that_often_means_a_missing_value_is_told(word):
    data = dataset_from_columns({"x": ["red", word, "blue", "red"], "y": [0, 1, 0, 1]}, target="y")
    assert codes(data) == [("missing_as_category", "x")]
    assert data.notices[0].cells == (NoticedCell(1, word),)


def test_a_text_that_is_missing_by_default_only_is_told_in_a_column_of_categories():
    columns = {"land": ["EU", "NA", "EU", "US"], "n": ["1", "NA", "2", "3"], "y": [0, 1, 0, 1]}
    data = dataset_from_columns(columns, target="y")
    assert codes(data) == [("text_as_missing", "land")]
    assert data.notices[0].cells == (NoticedCell(1, "NA"),)
    assert codes(dataset_from_columns(columns, target="y", missing_values=["NA"])) == []
    assert codes(dataset_from_columns(columns, target="y", missing_values=["?", "NA"])) == []
    assert codes(dataset_from_columns(columns, target="y", schema={"missing_values": ["NA", "?"]})) == []


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "ARFF"])
def test_a_declared_category_is_one_in_training_and_when_asked_even_if_it_is_listed_as_missing(name):
    form, _, write = WRITERS[name]
    columns = {
        "land": ["NA", "EU", "NA", "EU", None] * 4,
        "n": [1.5, None, 2.5, None] * 5,
        "y": ["p", "q", "p", "q", "q"] * 4,
    }
    schema = {"columns": [{"name": "land", "kind": "nominal", "categories": ["EU", "NA"]}]}
    data = read_table(io.BytesIO(write(columns)), form, target="y", schema=schema)
    assert [row["land"] for row in data.rows()] == columns["land"]
    assert codes(data) == []
    model = train(data, "cart")
    answers = predict(model, [{"land": "NA"}, {"land": "EU"}, {"n": "NA"}])
    assert [answer.label for answer in answers[:2]] == ["p", "q"]
    assert [answer.row.missing for answer in answers] == [("n",), ("n",), ("land", "n")]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "ARFF"])
@pytest.mark.parametrize("categories", [["-1", "0", "1"], [-1, 0, 1], [-1.0, 0.0, 1.0]])
@pytest.mark.parametrize("kind", [str, int, float])
def test_a_number_that_is_a_declared_category_is_one_though_its_text_is_listed_as_missing(kind, categories, name):
    form, _, write = WRITERS[name]
    cells = [-1, 0, 1] * 4
    columns = {"x": list(map(kind, cells)), "y": ["a", "b", "b"] * 4}
    schema = {"columns": [{"name": "x", "kind": "nominal", "categories": categories}]}
    declared = {"target": "y", "schema": schema, "missing_values": ["?", "NA", "-1"]}
    data = read_table(io.BytesIO(write(columns)), form, **declared)
    assert data.columns[0].tolist() == [[-1, 0, 1].index(cell) for cell in cells]
    model = train(data, "cart")
    for cell in ("-1", -1, -1.0, "-1.0"):
        table = pyarrow.table({"x": [cell]})
        read = dataset_from_columns({"x": [cell]}, like=model.schema)
        for answers in (predict(model, [{"x": cell}]), predict(model, table), predict(model, read)):
            assert [(answer.label, answer.row.missing) for answer in answers] == [("a", ())]


def test_a_text_that_is_listed_as_missing_is_missing_in_training_and_when_asked_beside_the_same_number():
    columns = {"x": ["7", "7.0", "a"] * 4, "y": ["p", "q", "r"] * 4}
    data = dataset_from_columns(columns, target="y", missing_values=["7"])
    assert data.schema.features[0].categories == ("7.0", "a")
    answers = predict(train(data, "cart"), [{"x": "7"}, {"x": "7.0"}])
    assert [answer.row.missing for answer in answers] == [("x",), ()]


def test_dates_and_numbers_in_another_notation_are_told_where_they_are_categories():
    columns = {
        "when": ["2024-01-01", "2024-01-02", "2024-01-01"],
        "price": ["1,5", "2,75", "1,5"],
        "size": ["1.234,5", "12 000", "12 000"],
        "share": ["5%", "7 %", "5%"],
        "version": ["1.2.3", "1.2.4", "1.2.3"],
        "y": [0, 1, 0],
    }
    assert codes(dataset_from_columns(columns, target="y")) == [
        ("dates_as_categories", "when"),
        ("numbers_as_categories", "price"),
        ("numbers_as_categories", "size"),
        ("numbers_as_categories", "share"),
    ]


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["1,234.50", "2,500.00", "12,000"], "numbers_as_categories"),
        (["1,234,567", "2,500,000", "12"], "numbers_as_categories"),
        (["\u22121.5", "\u22122", "3"], "numbers_as_categories"),
        (["1\u00a0000", "2\u202f500,5", "3"], "numbers_as_categories"),
        (["1\u2019000", "2\u2019500", "3"], "numbers_as_categories"),
        (["¥150", "-¥2", "¥3"], "numbers_as_categories"),
        (["31.12.2024", "1.2.2024", "2.2.2024"], "dates_as_categories"),
        (["12/31/2024", "01/02/2024 10:30", "2/2/2024"], "dates_as_categories"),
        (["2024-01-31", "31/12/2024", "01-02-2024", "2024/1/1"], "dates_as_categories"),
        (["1,23,4", "1,2,3", "3,4,5"], None),
        (["1.2.3", "1/2/3", "31.12-2024"], None),
    ],
)
def test_more_notations_of_numbers_and_dates_are_told(cells, code):
    told = codes(dataset_from_columns({"x": cells, "y": list("pqpq")[: len(cells)]}, target="y"))
    assert told == ([(code, "x")] if code else [])


def test_texts_of_numbers_in_a_column_of_the_type_text_are_told():
    data = dataset_from_arrow(pyarrow.table({"x": ["1e5", "11", "1e5"], "y": list("pqp")}), target="y")
    assert codes(data) == [("numbers_as_categories", "x")]
    assert "are numbers in another notation, or as texts; write numbers as 1234.5" in str(data.notices[0])


def test_numbers_that_are_one_only_because_they_are_rounded_are_told_as_rounded():
    data = dataset_from_csv("a,y\n1234567890123456789,p\n1234567890123456788,q\n", target="y")
    assert codes(data) == [("rounded", "a"), ("constant", "a")]


@pytest.mark.parametrize("declared", [{"target": "y", "ignore": ["id"]}, {"target": "id", "task": "regression"}])
def test_rounded_numbers_of_an_ignored_column_and_of_a_target_are_told(declared):
    table = pyarrow.table({"id": [2**60 + 1, 3, 5], "x": [1.5, 2.5, 0.5], "y": list("pqp")})
    assert codes(dataset_from_arrow(table, **declared)) == [("rounded", "id")]


@pytest.mark.parametrize("cells", [["p", "p", "p"], [1.5, 1.5, 1.5], [1, 1, 1]])
def test_a_target_of_one_value_is_told(cells):
    data = dataset_from_columns({"x": [1.5, 2.5, 0.5], "y": cells}, target="y")
    assert codes(data) == [("constant", "y")]
    assert str(data.notices[0]) == "target 'y' has one value and nothing can be learned from it"


def test_an_attribute_that_is_the_target_is_told():
    numbers = [0.5, 2.25, 1.0, 7.5, 3.0, 0.5, 1.5, 9.0, 4.0, 2.0]
    columns = {"a": numbers, "b": [*numbers[:9], 5.0], "c": [*numbers[:9], None], "y": numbers}
    assert codes(dataset_from_columns(columns, target="y")) == [("copy_of_target", "a")]
    classes = list("pqrpqpprqq")
    columns = {"a": classes, "b": list("pqrpqpprqr"), "c": list("qprqpqqrpp"), "y": classes}
    assert codes(dataset_from_columns(columns, target="y")) == [("copy_of_target", "a")]
    assert codes(dataset_from_columns(columns, target="y", ignore=["a"])) == []
    whole = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1]
    columns = {"a": whole, "b": list(map(float, whole)), "c": list(map(bool, whole)), "y": whole}
    assert codes(dataset_from_columns(columns, target="y")) == [("copy_of_target", "a"), ("copy_of_target", "b")]
    few = {"a": whole[:9], "y": whole[:9]}
    assert codes(dataset_from_columns(few, target="y")) == []


def test_an_identifier_is_told():
    n = 20
    columns = {
        "name": [f"row {row}" for row in range(n)],
        "from 0": list(range(n)),
        "from 1": [row + 1 for row in reversed(range(n))],
        "keys": [row * row + 100 for row in range(n)],
        "measured": [row / 4 for row in range(n)],
        "counts": [(row * 7) % n + row % 2 for row in range(n)],
        "gap": [None, *range(1, n)],
        "y": ["p", "q"] * (n // 2),
    }
    assert codes(dataset_from_columns(columns, target="y")) == [
        ("identifier", name) for name in ("name", "from 0", "from 1", "keys")
    ]
    assert codes(dataset_from_columns(columns, target="y", ignore=["name", "from 0", "from 1", "keys"])) == []


def test_nine_rows_are_too_few_for_an_identifier():
    assert codes(dataset_from_columns({"x": list(range(9)), "y": ["p", "q", "p"] * 3}, target="y")) == []


def test_a_target_of_whole_numbers_is_told_unless_it_has_two_or_is_declared():
    columns = {"x": [0.5, 0.25, 0.5] * 10, "y": [1, 2, 3] * 10}
    assert codes(dataset_from_columns(columns, target="y")) == [("target_kind", "y")]
    assert codes(dataset_from_columns(columns, target="y", task="regression")) == []
    assert codes(dataset_from_columns({**columns, "y": [1, 2, 1] * 10}, target="y")) == []
    many = dataset_from_columns({**columns, "y": list(range(30))}, target="y")
    assert many.schema.task == "regression"
    assert "30 whole numbers are read as numbers" in str(many.notices[0])


def test_rows_of_weight_0_are_told():
    data = dataset_from_csv("x,w,y\n1,0,p\n2,1,q\n3,0,p\n", target="y", weight="w")
    assert [str(notice) for notice in data.notices] == ["weight 'w': 2 of 3 rows have the weight 0 and are not used"]


def test_categories_that_the_other_table_lacks_are_told():
    first = dataset_from_columns({"x": ["a", "b"], "y": ["p", "q"]}, target="y")
    second = dataset_from_columns({"x": ["a", "c"], "y": ["p", "q"]}, like=first.schema)
    assert codes(second) == [("unknown_category", "x")]
    assert second.notices[0].cells == (NoticedCell(1, "c"),)


def test_a_notice_is_the_same_after_its_json_form():
    (notice,) = dataset_from_columns(columns_with("-"), target="y").notices
    assert Notice.from_dict(notice.to_dict()) == notice
    assert notice.to_dict()["cells"] == [{"row": 17, "value": "-"}]


@pytest.mark.parametrize("name", ["CSV", "JSON rows", "NDJSON"])
def test_numbers_with_leading_zeros_are_told_unless_the_kind_is_declared(name):
    assert name in WRITERS, list(WRITERS)
    form, _, write = WRITERS[name]
    content = write({"zip": ["01067", "80331", "1067", "04109"], "n": ["0", "0.5", "-0.7", "10"], "y": list("abab")})
    for kind, told in (
        (None, [("leading_zeros", "zip")]),
        ("numeric", []),
        ("nominal", []),
    ):
        declared = {"columns": [{"name": "zip", "kind": kind}]} if kind else None
        data = read_table(io.BytesIO(content), form, target="y", schema=declared)
        assert codes(data) == told
        assert "'01067', which are lost" in str(data.notices) or kind


def test_leading_zeros_of_a_late_block_are_told_once():
    cells = [str(row) for row in range(20_000)] + ["007", "008"]
    data = dataset_from_columns({"x": cells, "y": [["p", "q"][row % 2] for row in range(len(cells))]}, target="y")
    assert codes(data).count(("leading_zeros", "x")) == 1


def test_a_long_cell_of_blanks_is_no_number_in_another_notation_and_does_not_stop_the_reader() -> None:
    """An expression with several runs of blanks divides a long one in all possible ways, which takes hours."""
    blanks = " " * 100_000
    data = dataset_from_columns({"x": [f"{blanks}x", f"1{blanks}x"], "y": ["p", "q"]}, target="y")
    assert codes(data) == []
