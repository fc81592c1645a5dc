"""Model trees (M5) the slow way: least squares in fifty decimal digits, one column dropped at a time, recursion.

From ALGORITHMS.md sections 6 and 7; Quinlan (1992), Wang and Witten (1997). A *column* is (attribute, None), the number
itself, or (attribute, categories), 1 for those categories and 0 for the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext

from tests.reference.scores import Sample
from tests.reference.table import Cell, Table
from tests.reference.tree import Node

Upper = frozenset[int]
Column = tuple[int, Upper | None]

DIGITS = 50
RIDGE = Decimal("1e-8")
COLLINEAR = Decimal("1.5")
TIE = Decimal("1e-6")
LEAST_GAIN = Decimal("1e-9")
SLACK = 1e-6
FACTOR_WITHOUT_FREEDOM = 10.0


@dataclass(frozen=True)
class Linear:
    """intercept + Σ coefficient · column."""

    intercept: float
    coefficients: Mapping[Column, float]

    @property
    def n_parameters(self) -> int:
        return len(self.coefficients) + 1

    def answer(self, row: Sequence[Cell]) -> float:
        return self.intercept + math.fsum(
            coefficient * float(column_value(column, row)) for column, coefficient in self.coefficients.items()
        )


@dataclass(frozen=True)
class ModelNode:
    """A node with its own model, the rows it was made from, and the sum of squared residuals."""

    grown: Node
    sample: Sample
    columns: frozenset[Column]
    own: Linear
    squares: float
    children: tuple["ModelNode", ...] = ()

    @property
    def weight(self) -> float:
        return math.fsum(weight for _, weight in self.sample)


def with_models(node: Node, table: Table, sample: Sample, *, linear: bool = True) -> ModelNode:
    """Give every node of a grown tree its model; `table` has nothing missing."""
    parts: list[Sample] = [[] for _ in node.children]
    for row, weight in sample:
        if parts:
            parts[branch(node, table.row(row))].append((row, weight))
    children = tuple(
        with_models(child, table, part, linear=linear) for child, part in zip(node.children, parts, strict=True)
    )
    columns = frozenset[Column]().union(*(child.columns for child in children), [tested(node)] if children else [])
    own = fit(columns if linear else frozenset(), table, sample)
    if not linear:
        own = Linear(node.value, {})
    return ModelNode(node, sample, columns, own, squared_error(own, table, sample), children)


def branch(node: Node, row: Sequence[Cell]) -> int:
    value = row[node.attribute]
    assert value is not None
    return int(value > node.threshold) if node.test == "numeric" else node.branch_of_category[int(value)]


def tested(node: Node) -> Column:
    if node.test == "numeric":
        return node.attribute, None
    return node.attribute, frozenset(c for c, side in enumerate(node.branch_of_category) if side == 1)


def column_value(column: Column, row: Sequence[Cell]) -> Decimal:
    attribute, upper = column
    value = row[attribute]
    assert value is not None
    return Decimal(value) if upper is None else Decimal(int(int(value) in upper))


def in_order(columns: frozenset[Column]) -> list[Column]:
    """The columns sorted by attribute, and of one attribute the larger set of categories first."""
    return sorted(columns, key=lambda column: (column[0], -len(column[1] or ())))


def fit(columns: frozenset[Column], table: Table, sample: Sample) -> Linear:
    """Fit a linear model: begin with all columns that vary, then drop columns, one at a time.

    First the column with the largest standardised coefficient, while that is above 1.5 standard deviations of the
    target; then the one with the smallest, while Akaike's criterion falls.
    """
    with localcontext() as context:
        context.prec = DIGITS
        rows = [table.row(row) for row, _ in sample]
        weights = [Decimal(weight) for _, weight in sample]
        target = [Decimal(table.target.values[row]) for row, _ in sample]
        values = {column: [column_value(column, row) for row in rows] for column in in_order(columns)}
        kept = [column for column, cells in values.items() if len(set(cells)) > 1]
        whole = sum(weights)
        centre = sum(w * y for w, y in zip(weights, target, strict=True)) / whole
        deviations = [y - centre for y in target]
        standard = {column: standardised(values[column], weights) for column in kept}
        betas = solve([standard[column] for column in kept], deviations, weights)
        bound = COLLINEAR * (product(deviations, deviations, weights) / whole).sqrt()
        while kept and max(map(abs, betas)) > bound:
            largest = max(map(abs, betas))
            place = next(i for i, beta in enumerate(betas) if abs(beta) >= largest - TIE * largest)
            kept = kept[:place] + kept[place + 1 :]
            betas = solve([standard[column] for column in kept], deviations, weights)
        n_full = len(kept) + 1
        full = residual_squares([standard[column] for column in kept], betas, deviations, weights)
        if full == 0:
            return Linear(float(centre), {})
        criterion = whole + n_full
        while kept:
            smallest, largest = min(map(abs, betas)), max(map(abs, betas))
            place = next(i for i, beta in enumerate(betas) if abs(beta) <= smallest + TIE * largest)
            fewer = kept[:place] + kept[place + 1 :]
            trial = solve([standard[column] for column in fewer], deviations, weights)
            squares = residual_squares([standard[column] for column in fewer], trial, deviations, weights)
            after = squares / full * (whole - n_full) + 2 * (len(fewer) + 1)
            if after >= criterion - LEAST_GAIN * abs(criterion):
                break
            kept, betas, criterion = fewer, trial, after
        slopes = {column: beta / moments(values[column], weights)[1] for column, beta in zip(kept, betas, strict=True)}
        intercept = centre - sum(
            (slope * moments(values[column], weights)[0] for column, slope in slopes.items()), Decimal(0)
        )
        return Linear(float(intercept), {column: float(slope) for column, slope in slopes.items()})


def moments(cells: Sequence[Decimal], weights: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    """Mean and population standard deviation."""
    whole = sum(weights)
    mean = sum(w * x for w, x in zip(weights, cells, strict=True)) / whole
    variance = sum(w * (x - mean) ** 2 for w, x in zip(weights, cells, strict=True)) / whole
    return mean, variance.sqrt()


def standardised(cells: Sequence[Decimal], weights: Sequence[Decimal]) -> list[Decimal]:
    mean, deviation = moments(cells, weights)
    return [(x - mean) / deviation for x in cells]


def solve(columns: Sequence[Sequence[Decimal]], target: Sequence[Decimal], weights: Sequence[Decimal]) -> list[Decimal]:
    """Ridge regression by Gauss's elimination of the normal equations."""
    system = [
        [product(one, other, weights) + (RIDGE if i == j else 0) for j, other in enumerate(columns)]
        + [product(one, target, weights)]
        for i, one in enumerate(columns)
    ]
    n = len(columns)
    for i in range(n):
        for lower in range(i + 1, n):
            share = system[lower][i] / system[i][i]
            system[lower] = [below - share * above for below, above in zip(system[lower], system[i], strict=True)]
    answer = [Decimal(0)] * n
    for i in reversed(range(n)):
        answer[i] = (system[i][n] - sum(system[i][j] * answer[j] for j in range(i + 1, n))) / system[i][i]
    return answer


def product(one: Sequence[Decimal], other: Sequence[Decimal], weights: Sequence[Decimal]) -> Decimal:
    return sum((w * a * b for w, a, b in zip(weights, one, other, strict=True)), Decimal(0))


def residual_squares(
    columns: Sequence[Sequence[Decimal]],
    betas: Sequence[Decimal],
    target: Sequence[Decimal],
    weights: Sequence[Decimal],
) -> Decimal:
    left = list(target)
    for beta, column in zip(betas, columns, strict=True):
        left = [y - beta * x for y, x in zip(left, column, strict=True)]
    return product(left, left, weights)


def squared_error(model: Linear, table: Table, sample: Sample) -> float:
    return math.fsum(w * (table.target.values[row] - model.answer(table.row(row))) ** 2 for row, w in sample)


def pruned(root: ModelNode) -> ModelNode:
    """Bottom-up: a node's own model stays alone where its corrected error is not above its subtree's."""
    slack = SLACK * math.sqrt(root.grown.stats[2] / root.grown.weight)

    def visit(node: ModelNode) -> ModelNode:
        if not node.children:
            return node
        below = replace(node, children=tuple(map(visit, node.children)))
        own = corrected(node.squares, node.weight, node.own.n_parameters)
        subtree = corrected(leaf_squares(below), node.weight, n_parameters(below))
        return replace(node, children=()) if own <= subtree + slack else below

    return visit(root)


def corrected(squares: float, n: float, v: int) -> float:
    """rmse·(n + 2v)/(n − v), or ten times the rmse where there are no more rows than parameters."""
    rmse = math.sqrt(squares / n)
    return rmse * (FACTOR_WITHOUT_FREEDOM if n <= v else (n + 2 * v) / (n - v))


def leaf_squares(node: ModelNode) -> float:
    return math.fsum(map(leaf_squares, node.children)) if node.children else node.squares


def n_parameters(node: ModelNode) -> int:
    """The number of parameters of a subtree: those of its leaves' models, and one for each test."""
    return 1 + sum(map(n_parameters, node.children)) if node.children else node.own.n_parameters


def answer(root: ModelNode, row: Sequence[Cell], smoothing: float | None) -> float:
    """The leaf's model, then p' = (n·p + k·q)/(n + k) at each node on the way back to the root."""
    path = [root]
    while path[-1].children:
        path.append(path[-1].children[branch(path[-1].grown, row)])
    value = path[-1].own.answer(row)
    if smoothing is not None:
        for parent, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
            value = (child.weight * value + smoothing * parent.own.answer(row)) / (child.weight + smoothing)
    return value


def smoothed(root: ModelNode, smoothing: float) -> list[Linear]:
    """The leaves' models after smoothing, left to right."""
    found: list[Linear] = []

    def visit(node: ModelNode, above: tuple[ModelNode, ...]) -> None:
        if node.children:
            for child in node.children:
                visit(child, (*above, node))
            return
        made, n = node.own, node.weight
        for parent in reversed(above):
            columns = {**made.coefficients, **parent.own.coefficients}
            made = Linear(
                (n * made.intercept + smoothing * parent.own.intercept) / (n + smoothing),
                {
                    column: (
                        n * made.coefficients.get(column, 0.0) + smoothing * parent.own.coefficients.get(column, 0.0)
                    )
                    / (n + smoothing)
                    for column in columns
                },
            )
            n = parent.weight
        found.append(made)

    visit(root, ())
    return found


def leaves(node: ModelNode) -> list[ModelNode]:
    return [leaf for child in node.children for leaf in leaves(child)] if node.children else [node]
