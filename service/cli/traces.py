"""The account of a pruning as lines to read: what was pruned, by which rule, and what each step changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Cell = Callable[[Mapping[str, Any]], str]


def trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """Write a trace: see `espalier.Pruned.trace`."""
    before, after = trace["before"], trace["after"]
    size = f"{after['rules']} rules" if "rules" in after else str(after["leaves"])
    yield f"pruning   {trace['method']}: {before['leaves']} leaves before, {size} after"
    on = f" on {trace['held_out_rows']} held-out rows" if trace.get("held_out_rows") is not None else ""
    yield f"          {trace['estimate']}{on}: {before['estimate']:g} before, {after['estimate']:g} after"
    for note in trace.get("notes", ()):
        yield f"          {note}"
    if "rules" in after:
        yield from _rule_lines(trace)
        return
    if "table" in trace:
        yield from _path_lines(trace)
    if trace["steps"]:
        yield from _step_lines(trace["steps"])


def _step_lines(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    marks = {rule: chr(ord("a") + place) for place, rule in enumerate(dict.fromkeys(step["rule"] for step in steps))}
    yield "steps     in their order; node n is line n of `espalier show` of the tree before, and 0 its root"
    columns: dict[str, Cell] = {
        "node": lambda step: str(step["node"]),
        "reached by": lambda step: step["reached_by"],
        "asks for": lambda step: step["attribute"],
        "weight": lambda step: f"{step['weight']:.6g}",
        "before": lambda step: f"{step['before']:.6g}",
        "after": lambda step: f"{step['after']:.6g}",
        "nodes gone": lambda step: str(step["nodes_removed"]),
        "becomes": _becomes,
        "rule": lambda step: marks[step["rule"]],
    }
    if any("alpha" in step for step in steps):
        columns["price"] = lambda step: f"{step['alpha']:.6g}"
    yield from _table(columns, steps, left={"reached by", "asks for", "becomes", "rule"})
    yield "          before, after: the estimate of what is below the node, and of what takes its place"
    for rule, mark in marks.items():
        yield f"          {mark}: {rule}"


def _becomes(step: Mapping[str, Any]) -> str:
    return "a leaf" if step.get("raised") is None else f"its branch {step['raised']}"


def _path_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    yield "path      the best tree from each price of a leaf on; the one taken is marked"
    columns: dict[str, Cell] = {
        "price": lambda line: f"{line['alpha']:.6g}",
        "leaves": lambda line: str(line["leaves"]),
        "risk": lambda line: f"{line['risk']:.6g}",
    }
    if "error" in trace["table"][0]:
        columns["error"] = lambda line: f"{line['error']:.6g}"
        columns["± standard error"] = lambda line: f"{line['standard_error']:.3g}"
    columns[" "] = lambda line: "<" if line["selected"] else ""
    yield from _table(columns, trace["table"], left={" "})


def _rule_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    if trace["steps"]:
        yield "steps     leaf by leaf, a condition a line; the estimate is that of the rule alone"
        columns: dict[str, Cell] = {
            "leaf": lambda step: str(step["node"]),
            "of rule": lambda step: str(step["to_rule"]),
            "without": lambda step: step["dropped"],
            "before": lambda step: _estimate(step["before"]),
            "after": lambda step: _estimate(step["after"]),
            "holds for": lambda step: f"{step['covered']:.6g}",
        }
        yield from _table(columns, trace["steps"], left={"without"})
    for rule in trace["rules"]:
        yield f"rule {rule['number']:<4d} {rule['text']}"


def _estimate(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _table(columns: Mapping[str, Cell], lines: Sequence[Mapping[str, Any]], *, left: set[str]) -> Iterator[str]:
    cells = [list(columns), *([cell(line) for cell in columns.values()] for line in lines)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    for row in cells:
        padded = (
            cell.ljust(width) if name in left else cell.rjust(width)
            for name, cell, width in zip(columns, row, widths, strict=True)
        )
        yield ("          " + "  ".join(padded)).rstrip()
