"""What of a tree is shown: parts, levels, ways of rows; the same choice in text, Mermaid, DOT and SVG."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from espalier import (
    ConfigError,
    Feature,
    FeatureKind,
    Model,
    NotApplicable,
    Role,
    RowError,
    Schema,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
    explain,
    extract_rules,
    predict,
    to_dot,
    to_mermaid,
    to_svg,
    to_text,
    train,
)
from espalier.plotting.boxes import box_contents
from espalier.plotting.colours import legend_of
from espalier.plotting.selection import select_nodes
from tests.core.planted import (
    MIXED,
    NUMBERS,
    A,
    Ask,
    B,
    C,
    Cut,
    Known,
    Leaf,
    mixed_rows,
    n_nodes,
    node_numbered,
    plant,
    roots,
)
from tests.factories import REFERENCE

TREE = Cut(0, 14.6155, (Ask(1, (0, 1, 0), (A, Known(2, (C, B)))), B))
"""Nodes: 0 length, 1 colour, 2 a, 3 size, 4 c, 5 b, 6 b."""
SHOWN = (to_text, to_mermaid, to_dot, to_svg)


def chain(n_rows: int) -> Model:
    """Of rows whose classes alternate the best cut takes one from an end: a chain as deep as there are rows."""
    return train(dataset_from_columns({"x": list(range(n_rows)), "y": ["p", "q"] * (n_rows // 2)}, target="y"), "cart")


# Depth


def test_below_the_depth_asked_for_a_line_says_how_many_leaves_are_folded():
    assert to_text(plant(MIXED, TREE), depth=1).splitlines() == [
        "length ≤ 14.6155: … 3 leaves folded, mostly a (10/6)",
        "length > 14.6155: b (2)",
    ]
    assert to_text(plant(MIXED, TREE), depth=0) == "… 4 leaves folded, mostly b (12/7)\n"


def test_a_depth_that_reaches_all_leaves_is_the_whole_tree():
    model = plant(MIXED, TREE)
    assert to_text(model, depth=3) == to_text(model, depth=99) == to_text(model)


def test_what_is_folded_has_a_shape_of_its_own_in_diagrams():
    model = plant(MIXED, TREE)
    assert '    n1[["… 3 leaves folded#44; mostly a (10/6)"]]'.replace("#44;", ",") in to_mermaid(model, depth=1)
    assert '  n1 [label="… 3 leaves folded, mostly a (10/6)", style="dashed"];' in to_dot(model, depth=1).splitlines()


@given(root=roots(MIXED), depth=st.integers(0, 5))
def test_every_leaf_is_shown_or_counted_where_it_is_folded(root, depth):
    view = select_nodes(plant(MIXED, root), depth=depth)
    shown = [box.node for box in view.boxes if box.form == "leaf"]
    assert len(shown) + view.n_folded == view.n_leaves
    assert max(box.level for box in view.boxes) <= depth
    assert all(isinstance(node_numbered(root, node), Leaf) for node in shown)


@given(root=roots(MIXED), default_boxes=st.integers(1, 40))
def test_as_many_levels_are_opened_as_fit_and_no_more(root, default_boxes):
    model = plant(MIXED, root)
    n_boxes = [len(select_nodes(model, depth=depth).boxes) for depth in range(6)]
    assert len(select_nodes(model, default_boxes=default_boxes).boxes) == max(n for n in n_boxes if n <= default_boxes)


def test_more_boxes_than_are_allowed_are_refused_with_what_to_do():
    with pytest.raises(NotApplicable, match="the 10 boxes that can be shown: give a smaller depth, or a node"):
        to_text(chain(40), depth=39, most_nodes=10)
    assert len(to_text(chain(40), most_nodes=11).splitlines()) == 10


def test_a_tree_too_large_to_draw_is_refused_where_a_depth_is_given_and_folded_where_none_is():
    deep = chain(5_000)
    with pytest.raises(NotApplicable, match="the 4,000 boxes"):
        to_svg(deep, depth=4_999)
    # Of 100 boxes 49 levels take 99: a leaf a level, and what is folded.
    assert "4,951 of 5,000 leaves folded" in to_svg(deep)


def test_many_branches_of_one_node_share_a_box_in_the_picture_and_none_is_lost():
    names = tuple(f"v{number:03d}" for number in range(200))
    rows = {"v": list(names) * 2, "y": [f"c{number % 3}" for number in range(200)] * 2}
    model = train(dataset_from_columns(rows, target="y"), "id3")
    svg = to_svg(model)
    assert svg.count("data-node=") == 24  # the node, and 23 of its branches
    assert "177 more branches" in svg
    assert "177 of 200 leaves folded" in svg


def test_a_box_of_one_further_branch_of_a_regression_shows_its_rows_and_no_answer():
    names = [f"v{number:03d}" for number in range(101)] * 2
    rows = {"v": names, "y": [float(name[1:]) for name in names]}
    fields = {"nominal": "multiway", "missing": "fractional"}
    model = train(dataset_from_columns(rows, target="y", task="regression"), "cart", **fields)
    contents = box_contents(select_nodes(model, path={}, max_branches=24), legend_of(model))
    further = [each for each in contents if each.head == ("1 more branch",)]
    assert [(each.notes, each.spread) for each in further] == [(("1 leaf · 2 rows",), None)]


def test_class_weights_are_no_rows():
    rows = [{"x": x, "y": "yes" if x > 6 else "no"} for x in range(10)]
    model = train(dataset_from_rows(rows, target="y"), "cart", class_weight={"yes": 2, "no": 1})
    assert "weight 13" in to_svg(model)
    assert "13 rows" not in to_svg(model)


# Subtrees


def test_a_part_begins_with_the_rows_that_come_there():
    assert to_text(plant(MIXED, TREE), node=3).splitlines() == [
        "node 3, where length ≤ 14.6155 and colour is green:",
        "size is known: c (4/1)",
        "size is missing: b (2)",
    ]
    assert to_text(plant(MIXED, TREE), node=4).splitlines()[1:] == ["c (4/1)"]


@given(root=roots(MIXED), data=st.data())
def test_the_part_below_a_node_is_what_stands_below_it_in_the_whole(root, data):
    model = plant(MIXED, root)
    node = data.draw(st.integers(0, model.tree.n_nodes - 1))
    part = {box.node for box in select_nodes(model, node=node).boxes}
    assert part == set(range(node, node + n_nodes(node_numbered(root, node))))
    numbers = {int(number) for number in re.findall(r"^  n(\d+) \[", to_dot(model, node=node), re.MULTILINE)}
    assert numbers == part


@pytest.mark.parametrize("show", SHOWN)
@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"node": 7}, "/node"),
        ({"node": -1}, "/node"),
        ({"node": True}, "/node"),
        ({"depth": -1}, "/depth"),
        ({"depth": 1.5}, "/depth"),
        ({"path": 3}, "/path"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(show: Any, wrong: dict[str, Any], pointer: str):
    with pytest.raises(ConfigError) as caught:
        show(plant(MIXED, TREE), **wrong)
    assert [fault.path for fault in caught.value.faults] == [pointer]


# The way of a row


def test_the_way_of_a_row_begins_its_lines_and_is_never_folded():
    row = {"length": 3.0, "colour": "green", "size": "small"}
    assert to_text(plant(MIXED, TREE), path=row, depth=0).splitlines() == [
        "→ length ≤ 14.6155",
        "  |   colour is red or blue: a (4)",
        "→ |   colour is green",
        "→ |   |   size is known: c (4/1)",
        "  |   |   size is missing: b (2)",
        "  length > 14.6155: b (2)",
    ]


def test_ways_of_a_part_of_the_row_say_how_much_it_is():
    lines = to_text(plant(MIXED, TREE), path={"colour": "red"}).splitlines()
    assert lines[0] == "→ length ≤ 14.6155  (0.8333 of the row)"
    assert lines[1] == "→ |   colour is red or blue: a (4)  (0.8333 of the row)"
    assert lines[-1] == "→ length > 14.6155: b (2)  (0.1667 of the row)"


@given(root=roots(MIXED), row=mixed_rows())
def test_the_marked_nodes_are_those_that_the_answer_names(root, row):
    model = plant(MIXED, root)
    visited = {node for visit in predict(model, [row])[0].visits for node in visit.nodes}
    view = select_nodes(model, path=row, depth=0)
    assert {box.node for box in view.boxes if box.share > 0} == visited
    marked = re.findall(r"^    class (\S+) path$", to_mermaid(model, path=row), re.MULTILINE)
    assert {int(name[1:]) for name in marked[0].split(",")} == visited
    bold = re.findall(r'^  n(\d+) \[.*penwidth="4"\];$', to_dot(model, path=row), re.MULTILINE)
    assert set(map(int, bold)) == visited


def test_mermaid_numbers_the_thick_arrows_in_the_order_of_the_arrows():
    lines = to_mermaid(plant(MIXED, TREE), path={"length": 20.0}).splitlines()
    arrows = [line for line in lines if "-->" in line]
    [style] = [line for line in lines if "linkStyle" in line]
    thick = [arrows[int(number)] for number in style.split()[1].split(",")]
    assert thick == ['    n0 -->|"#62; 14.6155"| n6']


def test_an_explanation_made_before_shows_its_own_strategy_for_missing_values():
    model = plant(MIXED, TREE)
    [stopped] = explain(model, [{"length": 3.0}], missing="last_prediction")
    marked = [line for line in to_text(model, path=stopped).splitlines() if line.startswith("→")]
    assert marked == ["→ length ≤ 14.6155"]
    [heaviest] = explain(model, [{"length": 3.0}], missing="majority")
    # Node 3 has the more rows, 6 against 4; and asks whether a value is known, which it is not.
    assert "→ |   |   size is missing: b (2)" in to_text(model, path=heaviest).splitlines()


def test_an_explanation_of_another_model_is_refused():
    [other] = explain(plant(MIXED, TREE), [{"length": 3.0, "colour": "green", "size": "small"}])
    for show in SHOWN:
        with pytest.raises(ConfigError, match="another model"):
            show(plant(MIXED, Cut(0, 1.0, (A, B))), path=other)


def test_a_row_with_faults_is_refused_by_its_place():
    with pytest.raises(RowError) as caught:
        to_svg(plant(MIXED, TREE), path={"length": "3"})
    assert [fault.path for fault in caught.value.faults] == ["/0/length"]


def test_a_way_too_long_to_draw_is_refused_with_what_to_do():
    with pytest.raises(NotApplicable, match="begin at a node further down"):
        to_svg(chain(5_000), path={"x": 2_500.0})


# Lists of rules


def rules() -> Model:
    return extract_rules(plant(MIXED, TREE))


def test_of_a_list_of_rules_the_one_that_fired_is_marked():
    row = {"length": 3.0, "colour": "green", "size": "small"}
    lines = to_text(rules(), path=row).splitlines()
    assert [line[:8] for line in lines] == ["  rule 0", "→ rule 1", "  rule 2", "  rule 3", "  otherw"]
    dot = to_dot(rules(), path=row).splitlines()
    thick = [line.split(" [")[0].strip() for line in dot if "penwidth" in line]
    assert thick == ["r0", "r0 -> r1", "r1", "a1", "r1 -> a1"]


def test_a_list_of_rules_is_no_tree_to_draw_and_has_no_parts():
    with pytest.raises(NotApplicable, match="no tree"):
        to_svg(rules())
    for show in (to_text, to_mermaid, to_dot):
        with pytest.raises(NotApplicable, match="neither nodes nor depth"):
            show(rules(), depth=2)
        with pytest.raises(NotApplicable, match="neither nodes nor depth"):
            show(rules(), node=1)


# DOT


def test_dot_has_a_box_a_node_and_an_arrow_a_branch():
    tree = Cut(0, 1.5, (A, Ask(1, (0, 1, 0), (B, C))))
    assert to_dot(plant(MIXED, tree)).splitlines()[4:-1] == [
        '  n0 [label="length", style="solid"];',
        '  n1 [label="a (4)", style="rounded"];',
        '  n0 -> n1 [label="≤ 1.5"];',
        '  n2 [label="colour", style="solid"];',
        '  n0 -> n2 [label="&gt; 1.5"];',
        '  n3 [label="b (2)", style="rounded"];',
        '  n2 -> n3 [label="red or blue"];',
        '  n4 [label="c (4/1)", style="rounded"];',
        '  n2 -> n4 [label="green"];',
    ]


@pytest.mark.parametrize(
    "name", ['a"]; x [URL="//b"', "a\\", "a\\N\\G", "&lt;", "<b>", "a\nb", "a\x01b", "a\uffff", "}"]
)
def test_no_name_can_end_a_label_of_dot(name):
    schema = Schema(
        (
            Feature(name, FeatureKind.NOMINAL, categories=(name, "b")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, (name, "b")),
        )
    )
    lines = to_dot(plant(schema, Ask(0, (0, 1), (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))).splitlines()
    text = r'"(?:[^"\\<>\x00-\x1f\ud800-\udfff]|\\\\|\\")*"'
    legal = re.compile(rf'  n\d+(?: -> n\d+)? \[label={text}(?:, style="\w+")?\];')
    assert len(lines) == 4 + 5 + 1
    assert all(legal.fullmatch(line) for line in lines[4:-1]), lines


def test_texts_in_diagrams_are_cut_and_say_by_how_much():
    schema = Schema(
        (
            Feature("x" * 1000, FeatureKind.NOMINAL, categories=("a" * 10_000, "b")),
            Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("p", "q")),
        )
    )
    model = plant(schema, Ask(0, (0, 1), (Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))))
    for show in (to_dot, to_mermaid):
        assert max(map(len, show(model).splitlines())) < 400
        assert f"{'x' * 300}… (700 characters more)" in show(model)
    assert max(map(len, to_text(model).splitlines())) < 3_100


# Regressions and linear leaves


def test_what_is_folded_of_a_regression_says_its_mean():
    low, high = Leaf((4.0, 10.0, 0.0)), Leaf((4.0, 14.0, 0.0))
    model = plant(NUMBERS, Cut(0, 1.0, (low, high)))
    # Eight rows around 12, each two away from it.
    assert to_text(model, depth=0) == "… 2 leaves folded, on average 12 (8 ± 2)\n"


def test_equations_are_those_of_the_leaves_that_are_shown():
    data = json.loads((REFERENCE / "data" / "cpu.schema.json").read_text())
    model = train(dataset_from_csv(REFERENCE / "data" / data["file"], schema=data), "m5")
    whole = to_text(model).splitlines()
    assert [line.split(":")[0] for line in whole if line.startswith("LM")] == [f"LM{n}" for n in range(1, 6)]
    part = to_text(model, depth=1).splitlines()
    assert [line for line in part if line.startswith("LM")] == [line for line in whole if line.startswith("LM1:")]
    assert [line.split(":")[0] for line in re.findall(r">(LM\d: class = [^<]*)<", to_svg(model))] == [
        f"LM{number}" for number in range(1, 6)
    ]
