"""Parameter objects that were made by hand are checked, too."""

from typing import Any

import pytest

from espalier import ConfigError, CostComplexity, Pessimistic, ReducedError, dataset_from_rows, prune, train
from tests.core.data_sets import refused


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (Pessimistic(confidence=9.0), "/confidence"),
        (Pessimistic(quantile="foo"), "/quantile"),
        (ReducedError(order="foo"), "/order"),
        (CostComplexity(alpha=-1.0), "/alpha"),
        (CostComplexity(alpha=0.1, risk="foo"), "/risk"),
    ],
)
def test_an_illegal_parameter_is_refused_by_its_path(method: Any, path: str) -> None:
    data = dataset_from_rows([{"x": float(row), "y": "ab"[row % 2]} for row in range(40)], target="y")
    model = train(data, "cart")
    assert [each for each, _ in refused(ConfigError, lambda: prune(model, method, dataset=data))] == [path]
