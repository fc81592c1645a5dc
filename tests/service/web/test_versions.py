"""The page of a version."""

import itertools
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest

import espalier
from service.database.engine import transaction
from service.repositories import datasets
from service.web import versions
from tests.service.served import TENNIS
from tests.service.web.browser import Browser, Structure, text_of


def test_a_row_that_a_missing_value_divides_reaches_the_node_of_each_part(visitor: Browser) -> None:
    # C4.5 divides a row without a value among the branches: 6 rows and 4 reach leaf x, 5 and 4 leaf y.
    csv = "a,y\n" + "x,no\n" * 6 + "y,yes\n" * 5 + ",no\n" * 2 + ",yes\n" * 2
    visitor.served.train("parts", csv, target="y", preset="c45")
    tree = espalier.train(espalier.dataset_from_csv(csv, target="y"), "c45").tree
    assert tree.n_leaves == 2
    weights = {6 + 4 * 6 / 11: 10, 5 + 4 * 5 / 11: 9, 15.0: 15}
    for node in range(3):
        [n_rows] = [n for weight, n in weights.items() if abs(weight - float(tree.weight[node])) < 1e-6]
        assert f" {n_rows} rows of the data set reach this node" in text_of(
            visitor.get(f"/models/parts/versions/1/rows?node={node}")
        )


def test_a_row_with_more_paths_than_a_prediction_lists_makes_the_number_of_rows_a_least_one(visitor: Browser) -> None:
    # A leaf for each of 128 rows of seven attributes; the row without values reaches all, the first 100 are listed.
    cells = list(itertools.product("ft", repeat=7))
    csv = "a,b,c,d,e,f,g,y\n" + "".join(f"{','.join(row)},c{n}\n" for n, row in enumerate(cells)) + ",,,,,,,c0\n"
    data = espalier.dataset_from_csv(csv, target="y")
    model = espalier.train(data, "c45", pruning=None, min_weight_leaf=0.001)
    assert model.tree.n_leaves == 128 == espalier.MAX_VISITS + 28
    with transaction(visitor.served.service.sessions) as session:
        data_set = datasets.add_data_set(session, name="rows", new=datasets.new_data_set(data)).id
    visitor.served.keep("many", model, data_set_id=data_set)
    leaves = [node for node in range(model.tree.n_nodes) if model.tree.size[node] == 1]
    for node, text in ((leaves[0], "> 2 rows"), (leaves[-1], "> At least 1 row"), (0, "> 129 rows")):
        html = re.sub(r"\s+", " ", visitor.get(f"/models/many/versions/1/rows?node={node}"))
        verb = "reach" if text.endswith("s") else "reaches"
        assert f"<p{text} of the data set {verb} this node" in html


def test_a_page_counts_as_many_paths_as_a_prediction_may_have(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Four rows without a value, each with a path to both leaves.
    csv = "a,y\n" + "x,no\n" * 6 + "y,yes\n" * 5 + ",no\n" * 2 + ",yes\n" * 2
    data_set = visitor.served.train("parts", csv, target="y", preset="c45")
    service = visitor.served.service
    pages = ("/models/parts/versions/1/rows", f"/compare?left=parts/1&right=parts/1&dataset={data_set}")
    for limit, status in ((8, 200), (7, 413)):
        monkeypatch.setattr(service, "settings", replace(service.settings, max_full_nodes=limit))
        for page in pages:
            html = visitor.get(page, status=status, **{"HX-Request": "true"})
            assert ("too many paths of rows that take several branches: at most 7" in html) == (status == 413)


def test_one_thing_is_not_written_as_many(visitor: Browser) -> None:
    # Two rows of two classes: a leaf for each, and one error if the root is a leaf.
    data_set = visitor.served.train("one", "a,y\n1,1\n2,3\n", target="y", preset="cart")
    for path, text in (
        (f"/datasets/{data_set}", "2 rows, 2 columns, 1 attribute;"),
        ("/", "2 rows, 1 attribute "),
        ("/models/one/versions/1/rows?node=1", "1 row of the data set reaches this node."),
        ("/models/one/versions/1/prune?step=1", "1 leaf, errors 1"),
        ("/models/one/versions/1/tree?find=a", "1 node tests an attribute"),
    ):
        assert text in text_of(visitor.get(path)), path
    assert "Support 1 training row " in text_of(visitor.send("/models/one/try", {"v-0": "1"}).text)


def test_only_a_tree_is_offered_for_pruning(visitor: Browser) -> None:
    tree = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    for model in (tree, espalier.extract_rules(tree)):
        visitor.served.keep("tennis", model)
    offers = ["Prune it" in text_of(visitor.get(f"/models/tennis/versions/{number}")) for number in (1, 2)]
    assert offers == [True, False]


def test_a_search_keeps_the_part_of_the_tree_that_is_shown(visitor: Browser) -> None:
    visitor.served.train("tennis")
    version = "/models/tennis/versions/1"
    for node in range(1, 6):
        html = visitor.get(f"{version}?node={node}")
        hidden = {name: Structure(html).values[name] for name in ("node", "root")}
        found = visitor.get(f"{version}?{urlencode({**hidden, 'find': 'wind'})}")
        assert "1 node tests an attribute" in text_of(found)
        for one in (r"<h3>Node [^<]*", r'data-node="\d+"'):
            assert re.findall(one, found) == re.findall(one, html)


def test_the_last_of_a_list_of_rules_is_shown_or_said_to_be_left_out(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tree of play-tennis has five leaves: five rules, and the default rule.
    visitor.served.train("tennis")
    for most in (5, 6):
        monkeypatch.setattr(versions, "MAX_RULES", most)
        text = text_of(visitor.get("/models/tennis/versions/1/rules"))
        assert ("otherwise" in text) == (most == 6)
        assert ("The first 5 of 5 rules, without the default rule; all of them as a file" in text) == (most == 5)


def test_the_figures_of_weighted_rows_are_called_weights(visitor: Browser) -> None:
    visitor.served.train("heavy", "a,w,y\n1,2.5,p\n2,1,q\n", target="y", weight="w", preset="cart")
    for page, text in (
        ("/models/heavy/versions/1", "Weight of its rows 3.5 (100.0 % of all)"),
        ("/models/heavy/versions/1/tree?find=a", "node 0: a, weight 3.5"),
        ("/models/heavy/consultation", "p: weight 2.5"),
    ):
        assert text in text_of(visitor.get(page)), page
    answered = visitor.send("/models/heavy/try", {"v-0": "1"}).text
    assert "Support weight 2.5 " in text_of(answered)
    decision = re.search(r'href="/ui(/decisions/[^"]*)"', answered)
    assert decision
    assert "Support weight 2.5 " in text_of(visitor.get(decision[1]))


def test_figures_that_take_too_long_for_a_page_are_left_out(visitor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor.served.train("tennis")
    for seconds, is_shown in ((60.0, True), (-1.0, False)):
        monkeypatch.setattr(versions, "MAX_SECONDS", seconds)
        text = text_of(visitor.get("/models/tennis/versions/1/figures"))
        assert ("100.0 % right of 14 rows" in text) == is_shown
        assert ("takes too long" in text) != is_shown
        assert "No outcome of a decision is known yet." in text
