"""What a person meets first in a notebook: a table trained on, short representations, a drawing."""

import re

import pytest

import espalier

CSV = "wind,temperature,play\nweak,20,yes\nweak,22,yes\nstrong,21,no\nstrong,9,no\n"


def test_a_data_set_is_shown_in_one_line() -> None:
    data = espalier.dataset_from_csv(CSV, target="play")
    assert repr(data) == "<Dataset: 4 rows, 2 attributes, target 'play' (classification)>"
    assert repr(espalier.dataset_from_csv(CSV)) == "<Dataset: 4 rows, 3 attributes, no target>"


def test_a_model_is_shown_in_one_line() -> None:
    data = espalier.dataset_from_csv(CSV, target="play")
    model = espalier.train(data, "cart")
    assert repr(model) == "<Model: cart, classification of 'play', 2 leaves, 2 attributes, 4 rows>"
    rules = espalier.prune(model, "rules", dataset=data, estimate="pessimistic").model
    assert re.fullmatch(r"<Model: cart, classification of 'play', \d rules, 2 attributes, 4 rows>", repr(rules))


def test_a_notebook_draws_the_tree_and_lists_rules() -> None:
    data = espalier.dataset_from_csv(CSV.replace("weak", "<b>"), target="play")
    model = espalier.train(data, "cart")
    assert model._repr_html_() == espalier.to_svg(model)
    rules = espalier.prune(model, "rules", dataset=data, estimate="pessimistic").model
    assert rules._repr_html_().startswith("<pre>")
    assert "<b>" not in rules._repr_html_()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_table_is_trained_on_as_the_data_set_that_is_read_from_it(library: str) -> None:
    module = pytest.importorskip(library)
    columns = {
        "wind": ["weak", "weak", "strong", "strong"],
        "temperature": [20, 22, 21, 9],
        "play": ["y", "y", "n", "n"],
    }
    table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    expected = espalier.train(espalier.dataset_from_columns(columns, target="play"), "c45", min_weight_leaf=1)
    assert espalier.to_json(espalier.train(table, "c45", target="play", min_weight_leaf=1)) == espalier.to_json(
        expected
    )


def test_a_data_set_has_its_own_target() -> None:
    data = espalier.dataset_from_csv(CSV, target="play")
    with pytest.raises(espalier.ConfigError, match="must not be given with a Dataset"):
        espalier.train(data, target="wind")


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(espalier.DataError):
        espalier.train([1, 2, 3], target="y")


def test_the_version_is_that_of_the_distribution() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", espalier.__version__)
