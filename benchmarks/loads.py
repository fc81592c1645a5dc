"""Load by `wrk`, and what the processes under it have in memory."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

WARM_UP_SECONDS: Final = 2
WARM_UP_CONNECTIONS: Final = 64
PATIENCE: Final = 120.0
RESULT: Final = re.compile(r"Requests/sec:\s+([\d.]+)")
LATENCY: Final = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)\s*$", re.MULTILINE)
FAULTS: Final = re.compile(r"(?:Non-2xx or 3xx responses: (\d+))|(?:Socket errors: (.*))")
UNITS: Final[Mapping[str, float]] = MappingProxyType({"us": 1e-3, "ms": 1.0, "s": 1e3})


@dataclass(frozen=True, slots=True)
class Load:
    """What `wrk` saw: answers a second, milliseconds until half and until 99 of 100 had theirs, what went wrong."""

    rate: float
    p50: float
    p99: float
    faults: str


def post(address: str, body: Any) -> bytes:
    """Send JSON once, and give what comes back."""
    asked = urllib.request.Request(  # noqa: S310 - our own address
        address, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE) as response:  # noqa: S310 - as above
        content: bytes = response.read()
    return content


def loads(folder: Path, address: str, body: Any, seconds: int, connections: Iterable[int]) -> dict[int, Load]:
    """Ask again and again for so many seconds over each number of connections, one after the other; warm up before."""
    script = asking(folder, body)
    _load(script, address, WARM_UP_CONNECTIONS, WARM_UP_SECONDS)
    return {n: _load(script, address, n, seconds) for n in connections}


def asking(folder: Path, body: Any) -> Path:
    """Write down for `wrk` what is to be asked, and give the file."""
    script = folder / "ask.lua"
    lines = (
        "wrk.method = 'POST'",
        f"wrk.body = [==[{json.dumps(body)}]==]",
        "wrk.headers['Content-Type'] = 'application/json'",
    )
    script.write_text("\n".join(lines))
    return script


def _load(script: Path, address: str, connections: int, seconds: int) -> Load:
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), address]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above
    rate = RESULT.search(said)
    parts = {share: float(number) * UNITS[unit] for share, number, unit in LATENCY.findall(said)}
    faults = ", ".join(filter(None, (one for found in FAULTS.findall(said) for one in found)))
    return Load(float(rate[1]) if rate else 0.0, parts.get("50", 0.0), parts.get("99", 0.0), faults)


def memory_of(processes: Sequence[int]) -> float:
    """Give the memory of processes in MiB: what they share is counted once (PSS); those that have ended have none."""
    found = 0
    for process in processes:
        with suppress(OSError):
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            found += int(rollup.partition("\nPss:")[2].split()[0])
    return found / 1024
