"""The explanation of a test on very many categories stays small; on request it lists them all."""

import json

import pytest

import espalier
from espalier.model.tree import Tree

N_CATEGORIES = 3000
MAX_LISTED = 100  # the promise of the API's document


@pytest.fixture(scope="module")
def model() -> espalier.Model:
    """Return a tree with one test: of three categories in a row, two are of one class."""
    rows = [f"c{code:04},{'no' if code % 3 else 'yes'}" for code in range(N_CATEGORIES)]
    return espalier.train(espalier.dataset_from_csv("\n".join(["c,y", *rows, *rows]), target="y"), "cart")


def test_a_path_lists_some_categories_and_counts_the_others(model: espalier.Model) -> None:
    [explanation] = espalier.explain(model, [{"c": "c0001"}])
    document = explanation.to_dict()
    [step], [condition] = document["path"], document["conditions"]
    n_others = N_CATEGORIES * 2 // 3 - MAX_LISTED
    assert (step["set"], step["n_more"]) == (condition["in"], n_others)
    assert condition["n_more"] == n_others
    assert len(set(condition["in"])) == MAX_LISTED
    assert all(int(name[1:]) % 3 for name in condition["in"])
    assert condition["text"] == f"c is {' or '.join(condition['in'])} or one of {n_others:,} more"
    assert document["rule"] == f"if {condition['text']} then no"
    assert len(json.dumps(document)) < 10_000


def test_all_are_listed_on_request_and_in_python(model: espalier.Model) -> None:
    whole = [f"c{code:04}" for code in range(N_CATEGORIES) if code % 3]
    [explanation] = espalier.explain(model, [{"c": "c0001"}], detail="full")
    document = explanation.to_dict()
    assert document["path"][0]["set"] == document["conditions"][0]["in"] == whole
    assert "n_more" not in document["path"][0]
    assert document["rule"] == f"if c is {' or '.join(whole)} then no"
    [short] = espalier.explain(model, [{"c": "c0001"}])
    assert list(short.paths[0][0].categories or ()) == whole
    assert short.rule == document["rule"]


def test_a_few_categories_are_listed_as_ever() -> None:
    data = espalier.dataset_from_csv("c,y\n" + "a,no\nb,no\nc,yes\n" * 3, target="y")
    [explanation] = espalier.explain(espalier.train(data, "cart"), [{"c": "a"}])
    assert explanation.to_dict()["path"][0]["set"] == ["a", "b"]
    assert "n_more" not in explanation.to_dict()["conditions"][0]


@pytest.mark.parametrize(
    "work",
    [
        lambda model: espalier.counterfactuals(model, {"c": "c0"}),
        lambda model: espalier.explain(model, [{"c": "c0"}], detail="full"),
        espalier.extract_rules,
    ],
    ids=["counterfactuals", "explain", "extract_rules"],
)
def test_the_categories_of_a_test_are_not_read_again_for_each_branch(work, monkeypatch) -> None:
    rows = [{"c": f"c{code}", "y": "no" if code % 3 else "yes"} for code in range(200)]
    model = espalier.train(espalier.dataset_from_rows(rows, target="y"), "id3")
    assert model.tree.n_leaves == 200
    read, codes = [], Tree.codes
    monkeypatch.setattr(Tree, "codes", lambda tree, node: (read.append(node), codes(tree, node))[1])
    work(model)
    assert 0 < len(read) < 20
