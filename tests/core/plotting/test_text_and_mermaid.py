"""Trees as text and as Mermaid."""

import re

import pytest
from hypothesis import given

from espalier import Feature, FeatureKind, Role, Schema, dataset_from_columns, to_mermaid, to_text, train
from tests.core.planted import MIXED, NUMBERS, A, Ask, B, C, Cut, Known, Leaf, plant, roots


def test_each_branch_is_a_line_indented_by_its_depth_with_weight_and_errors_at_the_leaves():
    tree = Cut(0, 14.6155, (Ask(1, (0, 1, 0), (A, Known(2, (C, B)))), B))
    assert to_text(plant(MIXED, tree)).splitlines() == [
        "length ≤ 14.6155",
        "|   colour is red or blue: a (4)",
        "|   colour is green",
        "|   |   size is known: c (4/1)",
        "|   |   size is missing: b (2)",
        "length > 14.6155: b (2)",
    ]


def test_below_sixty_levels_the_level_is_a_number_and_the_text_no_longer_grows_with_the_square_of_the_depth():
    # Of rows whose classes alternate the best cut takes one from an end: a chain as deep as there are rows.
    chain = train(dataset_from_columns({"x": list(range(200)), "y": ["p", "q"] * 100}, target="y"), "cart")
    lines = to_text(chain).splitlines()
    assert (chain.tree.depth, len(lines)) == (199, 398)
    depths = [line.count("|") if "levels" not in line else int(line.split("(")[1].split()[0]) for line in lines]
    assert depths == [depth - 1 for depth in chain.tree.depths.tolist()[1:]]
    assert max(map(len, lines)) < 60 * 4 + 40


def test_a_tree_of_one_leaf_is_one_line():
    assert to_text(plant(MIXED, C)) == "c (4/1)\n"


def test_fractional_weights_are_shown_with_the_digits_that_they_have():
    assert to_text(plant(MIXED, Leaf((3.0, 5 / 13, 0.0)))) == "a (3.3846/0.3846)\n"
    assert to_text(plant(MIXED, Leaf((100.0, 0.0, 0.0)))) == "a (100)\n"


def test_a_regression_leaf_shows_weight_and_standard_deviation():
    assert to_text(plant(NUMBERS, Leaf((4.0, 12.5, 36.0)))) == "12.5 (4 ± 3)\n"


def test_ordinal_thresholds_are_categories_and_datetime_thresholds_dates():
    assert to_text(plant(MIXED, Cut(2, 1.5, (A, B)))).splitlines() == ["size ≤ middle: a (4)", "size > middle: b (2)"]
    schema = Schema((Feature("day", FeatureKind.DATETIME), Feature("y", FeatureKind.NUMERIC, Role.TARGET)))
    model = plant(schema, Cut(0, 86400.0, (Leaf((1.0, 0.0, 0.0)), Leaf((1.0, 1.0, 0.0)))))
    assert to_text(model).splitlines()[0] == "day ≤ 1970-01-02: 0 (1 ± 0)"


def test_mermaid_has_a_box_a_node_and_an_arrow_a_branch():
    tree = Cut(0, 1.5, (A, Ask(1, (0, 1, 0), (B, C))))
    assert to_mermaid(plant(MIXED, tree)).splitlines() == [
        "flowchart TD",
        '    n0["length"]',
        '    n1(["a (4)"])',
        '    n0 -->|"≤ 1.5"| n1',
        '    n2["colour"]',
        '    n0 -->|"> 1.5"| n2'.replace("> 1", "#62; 1"),
        '    n3(["b (2)"])',
        '    n2 -->|"red or blue"| n3',
        '    n4(["c (4/1)"])',
        '    n2 -->|"green"| n4',
    ]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("1. keep", "1#46; keep"),  # a numbered list, which Mermaid refuses to draw
        ("12) keep", "12#41; keep"),
        ("- none", "#45; none"),
        ("---", "#45;--"),
        ("_all_ of __it__", "#95;all#95; of #95;#95;it#95;#95;"),
        ("https://a.b", "https#58;//a.b"),
        ("www.a.b", "www#46;a.b"),
        ("petal_length", "petal_length"),
        ("2.5", "2.5"),
        ("-1.5", "-1.5"),
        ("a - b. c", "a - b. c"),
    ],
)
def test_mermaid_reads_no_markdown_in_a_name(name, written):
    schema = Schema((Feature(name, FeatureKind.NUMERIC), Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a", "b"))))
    lines = to_mermaid(plant(schema, Cut(0, 1.5, (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))).splitlines()
    assert lines[1] == f'    n0["{written}"]'


@pytest.mark.parametrize("name", ['a"]; click x', "end", "<script>alert(1)</script>", "a\nb", "#quot;", "`x`", "{x}|"])
def test_no_name_can_end_a_mermaid_label(name):
    schema = Schema(
        (
            Feature(name, FeatureKind.NOMINAL, categories=(name, "b")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, (name, "b")),
        )
    )
    lines = to_mermaid(plant(schema, Ask(0, (0, 1), (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))).splitlines()
    legal = re.compile(r'flowchart TD|    n\d+(\["[^"<>`{}|]*"\]|\(\["[^"<>`{}|]*"\]\)| -->\|"[^"<>`{}|]*"\| n\d+)')
    assert len(lines) == 6
    assert all(legal.fullmatch(line) for line in lines), lines


@pytest.mark.parametrize("name", ["a\nb", "a\r\nwind is weak: yes (99)", "a\u2028b", "a\x85b", "tab\tname"])
def test_no_name_can_begin_a_line_of_its_own_in_the_text(name):
    schema = Schema(
        (
            Feature(name, FeatureKind.NOMINAL, categories=(name, "b")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, (name, "b")),
        )
    )
    text = to_text(plant(schema, Ask(0, (0, 1), (Leaf((1.0, 0.0)), Leaf((0.0, 1.0))))))
    assert len(text.splitlines()) == 2


@given(root=roots(MIXED))
def test_there_is_a_line_for_each_node_but_the_root(root):
    model = plant(MIXED, root)
    n_nodes, n_leaves = model.tree.n_nodes, model.tree.n_leaves
    lines = to_text(model).splitlines()
    assert len(lines) == max(1, n_nodes - 1)
    assert sum(line.endswith(")") for line in lines) == n_leaves
    assert len(to_mermaid(model).splitlines()) == 1 + n_nodes + (n_nodes - 1)
