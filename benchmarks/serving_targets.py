"""What is promised of serving, and whether it holds."""

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
"""How many times as many answers a second as the peer's: `docs/benchmarks.md`."""
JUDGED: Final = (16, 64)
"""Connections at which the targets hold; with one alone the disk decides."""
MOST_P99: Final = 4.0
"""Of the durable answers at 16 connections, how many times the median 99 of 100 may take."""
MOST_SECONDS: Final = 1.5
MOST_MEMORY: Final = 110.0
FEW_ANSWERS: Final = 1_000
"""After which the memory is looked at."""


@dataclass(frozen=True, slots=True)
class Served(PredictionResults):
    """What a service of ours did.

    Attributes:
        early: MiB that all processes had together (PSS) after a thousand answers; None: they were not small.
    """

    early: float | None = None


def judge(found: Mapping[str, PredictionResults]) -> None:
    """Print what was promised, and whether it holds."""
    lines = []
    for ours, peer, least in TARGETS:
        for n in JUDGED:
            by_peer = ratio(found, ours, peer, n)
            if by_peer is not None:
                what = f"{ours}, by {peer}, {n} connections"
                lines.append([what, f"{by_peer:.2f}", f">= {least:g}", "holds" if by_peer >= least else "missed"])
    for name, served in found.items():
        if isinstance(served, Served) and served.early is not None:
            for what, value, most, form in _alone(served):
                holds = "holds" if value <= most else "missed"
                lines.append([f"{name}: {what}", form.format(value), "<= " + form.format(most), holds])
    print_table("Targets of serving", ("what", "found", "target", ""), lines)


def _alone(served: Served) -> Iterator[tuple[str, float, float, str]]:
    """Give what is judged without a peer: what, how much, at most how much, how it is shown."""
    load = served.loads[JUDGED[0]]
    if load.p50:
        yield f"p99 by p50, {JUDGED[0]} connections", load.p99 / load.p50, MOST_P99, "{:.1f}"
    yield "start until ready, with its worker", served.start, MOST_SECONDS, "{:.2f} s"
    if served.early is not None:
        yield f"all web processes (PSS), {FEW_ANSWERS:,} answers", served.early, MOST_MEMORY, "{:.0f} MiB"


def ratio(found: Mapping[str, PredictionResults], ours: str, peer: str, connections: int) -> float | None:
    """Give how many times as many answers a second; None where one of them was not measured."""
    if ours not in found or peer not in found:
        return None
    by_ours, by_peer = (found[name].loads.get(connections) for name in (ours, peer))
    return None if by_ours is None or by_peer is None or not by_peer.rate else by_ours.rate / by_peer.rate
