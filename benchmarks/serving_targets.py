"""What is promised of serving, and whether it holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.http_peers import (
    BARE,
    BARE_PINNED,
    BENTOML,
    FASTAPI,
    FASTAPI_MANY,
    FLASK_PATH,
    MLSERVER,
    PredictionResults,
)
from benchmarks.measuring import print_table

DURABLE: Final = "Espalier, durable"
POSTGRES: Final = f"{DURABLE}, PostgreSQL"
PINNED: Final = f"{POSTGRES}, pinned"
INFER: Final = f"{DURABLE}, inference protocol"
MANY: Final = f"{DURABLE}, 1 000 rows"
OFF: Final = "Espalier, log off"
MANY_OFF: Final = f"{OFF}, 1 000 rows"
TARGETS: Final = (
    (OFF, BARE, 0.9),
    (OFF, FASTAPI, 1.0),
    (DURABLE, BARE, 0.6),
    (POSTGRES, BARE, 0.5),
    (PINNED, BARE_PINNED, 0.6),
    (DURABLE, FLASK_PATH, 1.3),
    (DURABLE, MLSERVER, 3.0),
    (DURABLE, BENTOML, 3.0),
    (INFER, MLSERVER, 2.5),
    (MANY, FASTAPI_MANY, 3.0),
    (MANY_OFF, FASTAPI_MANY, 3.0),
)
"""How many times as many answers a second as the peer's: `docs/benchmarks.md`."""
JUDGED: Final = (16, 64)
"""Connections at which the targets hold; with one alone the disk decides."""
MOST_P99: Final = 4.0
"""Of the durable answers at 16 connections, how many times the median 99 of 100 may take."""
MOST_SECONDS: Final = 1.5
MOST_PROCESS: Final = 90.0
MOST_MEMORY: Final = 180.0
FEW_ANSWERS: Final = 1_000
"""After which the memory is looked at."""


@dataclass(frozen=True, slots=True)
class Served(PredictionResults):
    """What a service of ours did.

    Attributes:
        largest: MiB that the largest process had resident after a thousand answers; None: they were not small.
        early: What all had together (PSS) then.
    """

    largest: float | None = None
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
        if isinstance(served, Served) and served.largest is not None:
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
    after = f"{FEW_ANSWERS:,} answers"
    if served.largest is not None and served.early is not None:
        yield f"resident, the largest web process, {after}", served.largest, MOST_PROCESS, "{:.0f} MiB"
        yield f"all web processes (PSS), {after}", served.early, MOST_MEMORY, "{:.0f} MiB"


def ratio(found: Mapping[str, PredictionResults], ours: str, peer: str, connections: int) -> float | None:
    """Give how many times as many answers a second; None where one of them was not measured."""
    if ours not in found or peer not in found:
        return None
    by_ours, by_peer = (found[name].loads.get(connections) for name in (ours, peer))
    return None if by_ours is None or by_peer is None or not by_peer.rate else by_ours.rate / by_peer.rate
