"""Load by `wrk`, and the memory of the processes under load."""

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
    """Results of `wrk`: answers per second, median and 99th percentile of the latency in milliseconds, and errors."""

    rate: float
    p50: float
    p99: float
    faults: str


def post(address: str, body: Any) -> bytes:
    """Send JSON once and return the body of the response."""
    request = urllib.request.Request(  # noqa: S310 - our own address
        address, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - as above
        content: bytes = response.read()
    return content


def loads(folder: Path, address: str, body: Any, seconds: int, connections: Iterable[int]) -> dict[int, Load]:
    """Warm up once, then return the load at each number of connections, each measured for `seconds`."""
    script = write_script(folder, body)
    _load(script, address, WARM_UP_CONNECTIONS, WARM_UP_SECONDS)
    return {n: _load(script, address, n, seconds) for n in connections}


def write_script(folder: Path, body: Any) -> Path:
    """Write the script of `wrk` that posts `body`, and return its path."""
    script = folder / "ask.lua"
    lines = (
        "wrk.method = 'POST'",
        f"wrk.body = [==[{json.dumps(body)}]==]",
        "wrk.headers['Content-Type'] = 'application/json'",
    )
    script.write_text("\n".join(lines))
    return script


def _load(script: Path, address: str, connections: int, seconds: int) -> Load:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), address]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above
    rate = RESULT.search(output)
    latencies = {share: float(number) * UNITS[unit] for share, number, unit in LATENCY.findall(output)}
    faults = ", ".join(filter(None, (fault for match in FAULTS.findall(output) for fault in match)))
    return Load(float(rate[1]) if rate else 0.0, latencies.get("50", 0.0), latencies.get("99", 0.0), faults)


def memory_of(processes: Sequence[int]) -> float:
    """Return the memory of processes in MiB (PSS: shared pages are counted once). Ended processes count 0."""
    kilobytes = 0
    for process in processes:
        with suppress(OSError):
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            kilobytes += int(rollup.partition("\nPss:")[2].split()[0])
    return kilobytes / 1024
