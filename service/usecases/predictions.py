"""Answer rows by a version, within the limits of the settings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import espalier
from service.errors import ValidationFailed
from service.repositories import models
from service.usecases.limits import CELL, check_size

FAULTS_A_ROW = 20  # shown of a row that is refused while the others are answered


def check_cells(rows: Sequence[Mapping[str, Any]], *, limit: int) -> None:
    """Refuse rows with a text that is longer than the settings allow.

    Raises:
        espalier.TooLarge: One is.
    """
    lengths = (
        len(value) for row in rows if isinstance(row, Mapping) for value in row.values() if isinstance(value, str)
    )
    check_size(CELL, given=max(lengths, default=0), limit=limit)


def check_explaining(model: espalier.Model, n_rows: int, *, explain: str, limit: int) -> None:
    """Refuse more of `full` than the settings allow: each row is a look at every node, or at every rule.

    Raises:
        espalier.TooLarge: There are more rows times nodes.
    """
    if explain == "full":
        n_nodes = model.rules.n_rules + 1 if isinstance(model.body, espalier.RuleList) else model.tree.n_nodes
        check_size("rows times nodes (explain: full)", given=n_rows * n_nodes, limit=limit)


def check_paths(model: espalier.Model, n_rows: int, *, explain: str, limit: int) -> None:
    """Refuse paths of more nodes than the settings allow: all of an answer is in memory before it is sent.

    Raises:
        espalier.TooLarge: There are more rows times levels.
    """
    # Only a tree of so many nodes may have such paths: of others it is not asked how deep they are.
    if explain == "path" and not isinstance(model.body, espalier.RuleList) and n_rows * model.tree.n_nodes > limit:
        check_size("rows times levels (explain: path)", given=n_rows * model.tree.depth, limit=limit)


def rows_at_once(model: espalier.Model, most: int, *, explain: str, limit: int) -> int:
    """Give how many rows of a stream may be answered together, at most `most`: their paths are in memory together."""
    if explain == "none" or isinstance(model.body, espalier.RuleList):
        return most
    n_ways = min(espalier.MAX_VISITS, model.tree.n_leaves)
    if most * model.tree.n_nodes * n_ways <= limit:
        return most
    return max(1, min(most, limit // max(1, model.tree.depth * n_ways)))


@dataclass(frozen=True, slots=True)
class PredictionResults:
    """The answers to the rows of one request, before they are logged."""

    answers: list[dict[str, Any]]
    nodes: list[tuple[int, ...]]

    def add(self, one: "espalier.Prediction | espalier.Explanation") -> None:
        """Add the answer to a row."""
        self.answers.append(one.to_dict())
        self.nodes.append(one.nodes if isinstance(one, espalier.Prediction) else one.prediction.nodes)

    def add_refused(self, faults: Sequence[espalier.Fault]) -> None:
        """Add what is said of a row that cannot be answered."""
        shown = [{"pointer": one.path, "code": one.code, "message": one.message} for one in faults[:FAULTS_A_ROW]]
        self.answers.append({"errors": shown})
        self.nodes.append(())


def predict(
    version: models.LoadedVersion,
    rows: Sequence[Mapping[str, Any]],
    *,
    explain: str,
    missing: str | None = None,
    limit: int | None = None,
) -> PredictionResults:
    """Answer `rows`.

    Args:
        version: The version that answers.
        rows: The rows as they were given.
        explain: How much explanation is asked for: ``none``, ``path`` or ``full``.
        missing: What is done where a value is missing; None: as in training.
        limit: Steps that the paths of rows that go several ways may have together.

    Raises:
        espalier.TooLarge: They have more.
        espalier.RowError: Rows that the model cannot take; every fault, by row and attribute.
        ValidationFailed: The model cannot take missing values in this way.
    """
    answered = PredictionResults([], [])
    with _strategy_refused():
        for one in (
            espalier.predict(version.model, rows, missing=missing)
            if explain == "none"
            else espalier.explain(version.model, rows, detail=explain, missing=missing, most_steps=limit)
        ):
            answered.add(one)
    return answered


def predict_each(
    version: models.LoadedVersion,
    rows: Sequence[Mapping[str, Any]],
    *,
    explain: str,
    missing: str | None,
    place: Callable[[int, str], str],
    limit: int | None = None,
) -> PredictionResults:
    """Answer the rows that can be answered; of the others, say what is wrong with them.

    Args:
        version: The version that answers.
        rows: The rows as they were given.
        explain: As in `predict`.
        missing: As in `predict`.
        place: Gives the JSON pointer of a fault in the request from the row's number and the pointer within the row.
        limit: As in `predict`.

    Raises:
        espalier.TooLarge: As in `predict`.
        ValidationFailed: As in `predict`.
    """
    answered = PredictionResults([], [])
    with _strategy_refused():
        for number, one in enumerate(
            espalier.predict_each(version.model, rows, missing=missing)
            if explain == "none"
            else espalier.explain_each(version.model, rows, detail=explain, missing=missing, most_steps=limit)
        ):
            if isinstance(one, espalier.RowError):
                faults = [espalier.Fault(place(number, each.path), each.code, each.message) for each in one.faults]
                answered.add_refused(faults)
            else:
                answered.add(one)
    return answered


def reading_of(version: models.LoadedVersion, missing: str | None) -> espalier.Model:
    """Give the model of a version, as it takes missing values by this strategy.

    Raises:
        ValidationFailed: It cannot.
    """
    with _strategy_refused():
        return espalier.with_missing_strategy(version.model, missing)


@contextmanager
def _strategy_refused() -> Iterator[None]:
    """Say of a strategy for missing values that the model cannot take what is said of any other field of a request."""
    try:
        yield
    except espalier.ConfigError as error:
        raise ValidationFailed(error.faults) from None
