"""Documents of linear leaves: what is broken in one is refused by its array."""

import functools
import json

import pytest

from espalier import (
    DocumentError,
    dataset_from_rows,
    from_json,
    to_json,
    train,
)


@functools.cache
def document():
    rows = [{"x": x, "c": "abc"[x % 3], "y": x / 3 + x % 3 * 5 + x * x % 7} for x in range(30)]
    return to_json(train(dataset_from_rows(rows, target="y", task="regression"), "m5", pruning=None))


def broken(change):
    made = json.loads(document())
    change(made)
    with pytest.raises(DocumentError) as caught:
        from_json(json.dumps(made))
    return [fault.path for fault in caught.value.faults]


def in_linear(name, change):
    def applied(made):
        linear = made["tree"]["linear"]
        linear[name] = change(linear[name])

    return applied


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("start", lambda values: values[:-1]),
        ("start", lambda values: [1, *values[1:]]),
        ("start", lambda values: [*values[:-1], values[-1] + 1]),
        ("feature", lambda values: [-1, *values[1:]]),
        ("feature", lambda values: [9, *values[1:]]),
        ("feature", lambda values: values[::-1]),
        ("cut", lambda values: [-1, *values[1:]]),
        ("cut", lambda values: [1 - min(1, values[0]), *values[1:]]),
        ("cut", lambda values: values[:-1]),
        ("coefficient", lambda values: [None, *values[1:]]),
        ("coefficient", lambda values: [1e200, *values[1:]]),
        ("coefficient", lambda values: ["1", *values[1:]]),
        ("coefficient", lambda _: 3),
        ("intercept", lambda values: [-1e200, *values[1:]]),
        ("intercept", lambda values: values[:-1]),
        ("squares", lambda values: [-1.0, *values[1:]]),
        ("squares", lambda values: [None, *values[1:]]),
        ("rank", lambda values: [-1, *values[1:]]),
        ("rank", lambda values: values[:-1]),
        ("rank_start", lambda values: [0, *values[:-1]]),
        ("rank_start", lambda values: values[:-1]),
    ],
)
def test_a_broken_linear_model_is_refused_by_its_array(name, change):
    [path] = broken(in_linear(name, change))
    # What ends elsewhere than its starts say is told of either array; a wrong order is told of the attributes.
    assert path.startswith("/tree/linear/")
    assert path.removeprefix("/tree/linear/") in {name, "start", "rank_start", "feature", "cut"}


def test_models_and_configuration_must_agree():
    assert broken(lambda made: made["tree"].pop("linear")) == ["/tree/linear"]
    assert broken(lambda made: made["config"].update(leaf="constant")) == ["/tree/linear"]
    assert broken(lambda made: made["tree"].update(linear=7)) == ["/tree/linear"]
    assert broken(lambda made: made["preparation"].update(imputed=None)) == ["/preparation/imputed"]
    assert broken(lambda made: made["preparation"].update(imputed=[None, None])) == ["/preparation/imputed"]
