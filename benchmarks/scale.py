"""Tables on disk: time compared with training in memory, memory compared with the limit, and the curve over rows."""

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.parquet

import espalier
from benchmarks.measuring import print_table, ratio_text, seconds_text
from benchmarks.run import Run
from benchmarks.scale_cluster import print_cluster

N_COLUMNS: Final = 20
ROWS: Final = (200_000, 500_000, 1_000_000, 2_000_000)
ROWS_AT_ONCE: Final = 50_000
MAX_DEPTH: Final = 10
STEP_SECONDS: Final = 600
TARGETS: Final = {"cart": "label", "regression": "number", "c45": "label"}
WATCH_SECONDS: Final = 0.02


def run(run: Run) -> None:
    """Print a table for each kind of tree. On disk, the memory limit is half of the table, but at least 16 MiB."""
    sizes = dict.fromkeys(run.rows(n_rows) for n_rows in ROWS)
    tables = {n_rows: _written(n_rows, run.folder / f"{n_rows}.parquet") for n_rows in sizes}
    limits = {n_rows: max(2**24, n_rows * (N_COLUMNS + 1) * 8 // 2) for n_rows in sizes}
    for kind in filter(run.takes, TARGETS):
        lines = []
        for n_rows, path in tables.items():
            limit = limits[n_rows]
            in_memory, on_disk = (_measured(kind, path, each) for each in (0, limit))
            lines.append([
                f"{n_rows:,}", seconds_text(in_memory.get("seconds")), seconds_text(on_disk.get("seconds")),
                ratio_text(on_disk.get("seconds"), in_memory.get("seconds")), _megabytes(limit),
                _megabytes(in_memory.get("bytes")), _megabytes(on_disk.get("bytes")),
                on_disk.get("fault") or str(in_memory.get("model") == on_disk.get("model")),
            ])  # fmt: skip
        names = ("rows", "in memory", "on disk", "x", "limit", "MB in memory", "MB on disk", "same model")
        print_table(
            f"Larger than memory: {kind}, {N_COLUMNS} columns, depth {MAX_DEPTH}, Parquet to model", names, lines,
            "MB: the largest anonymous memory during reading and training, less that before.",
        )  # fmt: skip
    if run.takes("cluster"):
        print_cluster("cart", tables, limits)


def _written(n_rows: int, path: Path) -> Path:
    generator = np.random.default_rng(1)
    writer = None
    for first in range(0, n_rows, ROWS_AT_ONCE):
        n_block_rows = min(ROWS_AT_ONCE, n_rows - first)
        columns: dict[str, Any] = {f"x{column}": generator.standard_normal(n_block_rows) for column in range(N_COLUMNS)}
        signal = columns["x0"] + columns["x1"] * columns["x2"] + generator.standard_normal(n_block_rows) * 0.5
        table = pyarrow.table({**columns, "number": signal, "label": np.where(signal > 0, "yes", "no")})
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return path


def _measured(kind: str, path: Path, limit: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", kind, str(path), str(limit)]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=True)  # noqa: S603 - own arguments
    except (subprocess.SubprocessError, OSError) as error:
        return {"fault": type(error).__name__}
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def _megabytes(n_bytes: int | None) -> str:
    return "–" if n_bytes is None else f"{n_bytes / 1e6:,.0f}"


def train_on_disk(kind: str, path: Path, limit: int, **options: Any) -> "espalier.Model":
    """Train on a file: in memory if `limit` is 0, else on disk with `limit` bytes of memory and these `options`."""
    target = TARGETS[kind]
    declared: dict[str, Any] = {"target": target, "ignore": sorted(set(TARGETS.values()) - {target})}
    fields: dict[str, Any] = {"max_depth": MAX_DEPTH, "pruning": None}
    preset = "c45" if kind == "c45" else "cart"
    if limit:
        return espalier.train(path, preset, memory_limit=limit, declared=declared, **fields, **options)
    return espalier.train(espalier.dataset_from_file(path, **declared), preset, **fields)


def watched(work: Callable[[], "espalier.Model"]) -> dict[str, Any]:
    """Return the seconds, the `perf_counter` at the end, the growth of anonymous memory, and a digest of the model."""
    before, peak, is_over = _anonymous_bytes(), [0], threading.Event()

    def watch() -> None:
        while not is_over.wait(WATCH_SECONDS):
            peak[0] = max(peak[0], _anonymous_bytes())

    threading.Thread(target=watch, daemon=True).start()
    start = time.perf_counter()
    model = work()
    end = time.perf_counter()
    is_over.set()
    digest = hashlib.sha256(str(espalier.to_json(model)).encode()).hexdigest()
    return {"seconds": end - start, "end": end, "bytes": peak[0] - before, "model": digest}


def _anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


if __name__ == "__main__":
    own_kind, own_path, own_limit = sys.argv[1:]
    print(json.dumps(watched(lambda: train_on_disk(own_kind, Path(own_path), int(own_limit)))))
