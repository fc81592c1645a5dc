"""Targets of serving, and whether they hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.http_peers import (
    BARE,
    BENTOML,
    FASTAPI_MANY,
    FLASK_PATH,
    MLSERVER,
    PredictionResults,
)
from benchmarks.measuring import print_table

DURABLE: Final = "Espalier, durable"
POSTGRES: Final = f"{DURABLE}, PostgreSQL"
INFER: Final = f"{DURABLE}, inference protocol"
MANY: Final = f"{DURABLE}, 1 000 rows"
MANY_COLUMNS: Final = f"{MANY} as columns"
OFF: Final = "Espalier, log off"
NEWEST: Final = f"{OFF}, newest version"
TARGETS: Final = (
    (DURABLE, BARE, 0.4),
    (POSTGRES, BARE, 0.33),
    (OFF, BARE, 0.6),
    (DURABLE, FLASK_PATH, 0.8),
    (DURABLE, MLSERVER, 1.4),
    (DURABLE, BENTOML, 4.0),
    (MANY, FASTAPI_MANY, 1.5),
    (MANY_COLUMNS, FASTAPI_MANY, 2.5),
)
"""Our line, the peer's line, and the smallest ratio of our answers per second to the peer's."""
JUDGED: Final = (16, 64)
"""Connections at which the targets are checked. With one connection the disk decides."""
MAX_P99_RATIO: Final = 4.0
"""Largest ratio of the 99th percentile of the latency to its median, at 16 connections."""
MAX_SECONDS: Final = 1.5
MAX_MEMORY: Final = 110.0
FEW_ANSWERS: Final = 1_000
"""Number of answers before the memory `early` is measured."""


@dataclass(frozen=True, slots=True)
class Served(PredictionResults):
    """Results of an Espalier service.

    Attributes:
        early: MiB of all web processes together (PSS) after a thousand answers; None for requests of many rows.
    """

    early: float | None = None


def judge(results: Mapping[str, PredictionResults]) -> None:
    """Print the targets, and whether they hold."""
    lines = []
    for ours, peer, smallest in TARGETS:
        for n in JUDGED:
            by_peer = ratio(results, ours, peer, n)
            if by_peer is not None:
                target = f"{ours}, by {peer}, {n} connections"
                lines.append(
                    [target, f"{by_peer:.2f}", f">= {smallest:g}", "holds" if by_peer >= smallest else "missed"]
                )
    for name, served in results.items():
        if isinstance(served, Served) and served.early is not None:
            for target, value, largest, value_format in _targets_without_peer(served):
                holds = "holds" if value <= largest else "missed"
                lines.append(
                    [f"{name}: {target}", value_format.format(value), "<= " + value_format.format(largest), holds]
                )
    print_table("Targets of serving", ("what", "found", "target", ""), lines)


def _targets_without_peer(served: Served) -> Iterator[tuple[str, float, float, str]]:
    """Yield the targets without a peer: name, measured value, largest value that meets it, and number format."""
    load = served.loads[JUDGED[0]]
    if load.p50:
        yield f"p99 by p50, {JUDGED[0]} connections", load.p99 / load.p50, MAX_P99_RATIO, "{:.1f}"
    yield "start until ready, with its worker", served.start, MAX_SECONDS, "{:.2f} s"
    if served.early is not None:
        yield f"all web processes (PSS), {FEW_ANSWERS:,} answers", served.early, MAX_MEMORY, "{:.0f} MiB"


def ratio(results: Mapping[str, PredictionResults], ours: str, peer: str, connections: int) -> float | None:
    """Return the ratio of our answers per second to the peer's, or None if one of them was not measured."""
    if ours not in results or peer not in results:
        return None
    by_ours, by_peer = (results[name].loads.get(connections) for name in (ours, peer))
    return None if by_ours is None or by_peer is None or not by_peer.rate else by_ours.rate / by_peer.rate
