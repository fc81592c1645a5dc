"""Held-out rows that backfit has added to the leaves: they were learned from, and do not vote again."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import espalier
from espalier import Dataset, Holdout, Model, NotApplicable

HOLDOUT = Holdout(fraction=1 / 3, seed=2)
PLAIN = {"method": "reduced_error", "backfit": False}
VOTES: list[tuple[str, dict[str, Any]]] = [
    ("reduced_error", {}),
    ("reduced_error", {"backfit": True}),
    ("cost_complexity", {"select": "validation"}),
    ("rules", {}),
]


def rows(seed: int, n_rows: int = 150, *, weight: float = 1.0) -> Dataset:
    draw = np.random.default_rng(seed)
    x, z = draw.integers(0, 40, (2, n_rows)).tolist()
    wrong = (draw.random(n_rows) < 0.2).tolist()
    listed = [
        {"x": a, "z": b, "y": "ab"[(a > b) ^ flip], "w": weight * (1 + a % 3)}
        for a, b, flip in zip(x, z, wrong, strict=True)
    ]
    return espalier.dataset_from_rows(listed, target="y", weight="w")


DATA, OTHER, THIRD = rows(1), rows(2), rows(3)
UNWEIGHTED = espalier.Schema(
    tuple(
        replace(feature, role=espalier.Role.IGNORE) if feature.role is espalier.Role.WEIGHT else feature
        for feature in DATA.schema.features
    )
)


def remembered() -> tuple[Model, dict[str, Any]]:
    return espalier.train(DATA, "reptree", holdout=HOLDOUT), {"dataset": DATA}


def named_again() -> tuple[Model, dict[str, Any]]:
    return espalier.train(DATA, "reptree", holdout=HOLDOUT), {"dataset": DATA, "holdout": HOLDOUT}


def a_data_set_of_its_own() -> tuple[Model, dict[str, Any]]:
    return espalier.train(DATA, "reptree", holdout=OTHER), {"dataset": DATA, "holdout": OTHER}


def added_by_an_earlier_pruning() -> tuple[Model, dict[str, Any]]:
    grown = espalier.train(DATA, "cart", holdout=HOLDOUT)
    once = espalier.prune(grown, "reduced_error", dataset=DATA, backfit=True).model
    return espalier.prune(once, "cost_complexity", alpha=0.0).model, {"dataset": DATA}


@pytest.mark.parametrize("made", [remembered, named_again, a_data_set_of_its_own, added_by_an_earlier_pruning])
@pytest.mark.parametrize(("method", "params"), VOTES)
def test_rows_in_the_leaves_are_not_asked_again(made: Any, method: str, params: dict[str, Any]) -> None:
    model, given = made()
    pruner = espalier.pruning_method(method, **params)
    for kept in (model, espalier.from_json(espalier.to_json(model))):
        with pytest.raises(NotApplicable, match="backfit"):
            espalier.prune(kept, pruner, **given)
        holdout = given.get("holdout")
        validation_data = holdout.fingerprint if isinstance(holdout, Dataset) else None
        with pytest.raises(espalier.ConfigError) as caught:
            espalier.check_pruning(kept, pruner, validation_data=validation_data)
        assert [fault.path for fault in caught.value.faults] == ["/holdout"]


@pytest.mark.parametrize(("method", "params"), VOTES)
def test_other_rows_may_vote_and_no_row_is_counted_twice(method: str, params: dict[str, Any]) -> None:
    model, given = remembered()
    pruner = espalier.pruning_method(method, **params)
    espalier.check_pruning(model, pruner, validation_data=THIRD.fingerprint)
    pruned = espalier.prune(model, pruner, **{**given, "holdout": THIRD}).model
    if method != "rules":
        counted = DATA.weight.sum() + (THIRD.weight.sum() if params.get("backfit") else 0)
        assert pruned.tree.weight[0] == pytest.approx(counted)
    if params.get("backfit"):
        for holdout in (None, THIRD):
            with pytest.raises(NotApplicable, match="backfit"):
                espalier.prune(pruned, "reduced_error", dataset=DATA, holdout=holdout)


@pytest.mark.parametrize(("method", "params"), VOTES)
def test_without_backfit_the_same_rows_vote_as_often_as_they_are_asked(method: str, params: dict[str, Any]) -> None:
    model = espalier.train(DATA, "reptree", holdout=HOLDOUT, pruning=PLAIN)
    espalier.prune(model, method, dataset=DATA, **params)


def test_rows_in_the_leaves_are_not_counted_anew_as_if_they_were_not() -> None:
    model, given = remembered()
    pruner = espalier.pruning_method("pessimistic")
    with pytest.raises(espalier.ConfigError) as caught:
        espalier.check_pruning(model, pruner)
    assert [fault.path for fault in caught.value.faults] == ["/raising"]
    with pytest.raises(NotApplicable, match="raising"):
        espalier.prune(model, pruner, **given)
    espalier.prune(model, "pessimistic", raising=False, **given)


def test_the_document_of_a_model_without_backfitted_rows_does_not_speak_of_them() -> None:
    plain = espalier.train(DATA, "reptree", holdout=HOLDOUT, pruning=PLAIN)
    assert "backfitted" not in espalier.to_document(plain)["training"]
    model, _ = remembered()
    document = espalier.to_document(model)
    assert document["training"]["backfitted"] == (DATA.fingerprint,)
    assert espalier.from_document(document).training == replace(model.training)
    for wrong in ("text", 3, [1], {"a": 1}, [None]):
        changed = {**document, "training": {**document["training"], "backfitted": wrong}}
        with pytest.raises(espalier.DocumentError, match="/training/backfitted"):
            espalier.from_document(changed)


@pytest.mark.parametrize("method", ["reduced_error", "cost_complexity", "pessimistic", "model_tree", "rules"])
def test_a_list_of_rules_is_refused_before_its_rows_are_asked_for(method: str) -> None:
    rules = espalier.prune(espalier.train(DATA, "cart", holdout=HOLDOUT), "rules", dataset=DATA).model
    params = {"select": "validation"} if method == "cost_complexity" else {}
    with pytest.raises(NotApplicable, match="list of rules"):
        partial(espalier.prune, rules, method, **params)()


@pytest.mark.parametrize(("method", "params"), VOTES)
def test_only_rows_that_had_a_part_in_a_model_are_said_to_have_had_one(method: str, params: dict[str, Any]) -> None:
    """The rows that measure a child are those of its own pruning, or others."""
    grown = espalier.train(DATA, "cart", holdout=HOLDOUT, pruning=PLAIN)
    assert grown.training.held_out_use == "validation"
    assert grown.training.asked == (DATA.fingerprint,)
    elsewhere = espalier.prune(grown, "cost_complexity", alpha=0.0, dataset=DATA, holdout=OTHER).model
    assert elsewhere.training.held_out_use == "holdout"
    again = espalier.prune(elsewhere, "cost_complexity", alpha=0.0, dataset=DATA).model
    assert again.training.held_out_use == "validation"
    asked = espalier.prune(elsewhere, method, dataset=DATA, holdout=OTHER, **params).model
    assert asked.training.held_out_use == "validation"
    assert asked.training.asked == (DATA.fingerprint, OTHER.fingerprint)


def added_from_another_data_set() -> tuple[Model, dict[str, Any]]:
    grown = espalier.train(DATA, "cart", holdout=HOLDOUT)
    return espalier.prune(grown, "reduced_error", dataset=DATA, holdout=OTHER, backfit=True).model, {
        "dataset": DATA,
        "holdout": OTHER,
    }


def added_without_weights() -> tuple[Model, dict[str, Any]]:
    """The root tells that it has counted more rows than were learned from, whatever pruned it since."""
    data, other = (espalier.Dataset(UNWEIGHTED, each.columns) for each in (DATA, OTHER))
    grown = espalier.train(data, "cart")
    once = espalier.prune(grown, "reduced_error", dataset=data, holdout=other, backfit=True).model
    return espalier.prune(once, "cost_complexity", alpha=0.0).model, {"dataset": data, "holdout": other}


@pytest.mark.parametrize(
    "made", [remembered, a_data_set_of_its_own, added_from_another_data_set, added_without_weights]
)
def test_rows_that_were_added_to_the_leaves_are_not_counted_as_training_rows(made: Any) -> None:
    model, given = made()
    with pytest.raises(NotApplicable, match="backfit"):
        espalier.prune(model, "reduced_error", **given)
    child = espalier.prune(model, "cost_complexity", alpha=0.0).model
    assert child.training.train == {"n_rows": model.training.n_training_rows}


@pytest.mark.parametrize("made", [remembered, a_data_set_of_its_own, added_by_an_earlier_pruning])
def test_the_training_rows_of_backfitted_leaves_are_answered_one_by_one(made: Any) -> None:
    model, _ = made()
    with_rows = espalier.prune(model, "cost_complexity", alpha=0.0, dataset=DATA).model
    kept = np.setdiff1d(np.arange(DATA.n_rows), espalier.training.holdout_rows.held_out_rows(HOLDOUT, DATA))
    learned = DATA.take(kept) if model.training.holdout else DATA
    assert with_rows.training.train == espalier.evaluate(with_rows, learned).figures()


def test_the_very_file_that_was_held_out_is_known_again_whatever_its_ignored_columns_hold(tmp_path: Any) -> None:
    """A model keeps no ids of the rows that it was trained on."""

    def table(name: str, seed: int) -> Any:
        draw = np.random.default_rng(seed)
        lines = [
            f"{name}{n},{x},{'ab'[(x > 20) ^ (n % 5 == 0)]}" for n, x in enumerate(draw.integers(0, 40, 90).tolist())
        ]
        (tmp_path / name).write_text("id,x,y\n" + "\n".join(lines) + "\n")
        return tmp_path / name

    train, other = table("train.csv", 1), table("other.csv", 2)
    data = espalier.dataset_from_csv(train, target="y", ignore=["id"])
    model = espalier.train(data, "reptree", holdout=espalier.dataset_from_csv(other, like=data.schema))
    again = espalier.dataset_from_csv(other, like=model.schema)
    with pytest.raises(NotApplicable, match="backfit"):
        espalier.prune(model, "reduced_error", dataset=data, holdout=again)
    measured = espalier.prune(model, "cost_complexity", alpha=0.0, dataset=data, holdout=again).model
    assert measured.training.held_out_use == "validation"


@pytest.mark.parametrize("preset", ["cart", "reptree"])
def test_no_table_is_held_out_of_itself(preset: str) -> None:
    with pytest.raises(espalier.ConfigError, match="/holdout: is the training data itself"):
        espalier.train(DATA, preset, holdout=rows(1))


@pytest.mark.parametrize(
    "column",
    [
        {"kind": "ordinal", "categories": ["lo", "mid", "hi"]},
        {"kind": "nominal", "categories": [1, 2, 3]},
        {"kind": "boolean"},
        {"kind": "nominal"},
    ],
)
def test_a_table_read_like_itself_is_itself_whatever_its_ignored_columns_are(column: dict[str, Any]) -> None:
    values = {"ordinal": ["hi", "mid"], "boolean": [True]}.get(column["kind"], ["b", "a"])
    values = [3, 2] if 1 in column.get("categories", ()) else values
    listed = [{"z": values[n % len(values)], "x": n, "y": "ab"[n > 9]} for n in range(20)]
    declared = {"columns": [{"name": "z", "role": "ignore", **column}]}
    data = espalier.dataset_from_rows(listed, target="y", schema=declared)
    again = espalier.dataset_from_rows(listed, like=data.schema)
    assert again.fingerprint == data.fingerprint
    espalier.prune(espalier.train(data, "cart"), "cost_complexity", alpha=0.0, dataset=again)


def test_what_was_set_aside_and_never_asked_is_a_holdout() -> None:
    model = espalier.train(DATA, "cart", holdout=HOLDOUT)
    assert (model.training.held_out_use, model.training.asked) == ("holdout", ())
    assert "asked" not in espalier.to_document(model)["training"]
    stopped = espalier.train(DATA, "cart", holdout=OTHER, validation_stop=True).training
    assert (stopped.held_out_use, stopped.asked) == ("validation", (OTHER.fingerprint,))


@pytest.mark.parametrize(("field", "wrong"), [("asked", "text"), ("asked", [1]), ("divided", 1), ("divided", "no")])
def test_a_record_that_is_none_is_refused_by_its_field(field: str, wrong: object) -> None:
    document = espalier.to_document(espalier.train(DATA, "cart"))
    with pytest.raises(espalier.DocumentError, match=f"/training/{field}"):
        espalier.from_document({**document, "training": {**document["training"], field: wrong}})


def test_a_trace_says_how_many_held_out_rows_chose_the_tree() -> None:
    grown = espalier.train(DATA, "cart", holdout=HOLDOUT)
    n_rows = DATA.n_rows - grown.training.n_training_rows
    for method, params in VOTES:
        assert espalier.prune(grown, method, dataset=DATA, **params).trace["held_out_rows"] == n_rows
    for params in ({"select": "cv", "folds": 3}, {"alpha": 0.01}):
        assert espalier.prune(grown, "cost_complexity", dataset=DATA, **params).trace["held_out_rows"] is None


def test_without_the_training_rows_there_are_no_training_figures_after_a_backfit() -> None:
    grown = espalier.train(DATA, "cart")
    pruned = espalier.prune(grown, "reduced_error", holdout=OTHER, backfit=True).model
    assert pruned.training.train == {"n_rows": DATA.n_rows}  # the leaves have counted the held-out rows, too
