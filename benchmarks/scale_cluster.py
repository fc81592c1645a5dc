"""Tables on disk, with their columns divided over a local Dask cluster: the speed-up and the transferred bytes.

On each level, each worker reads one bit per row: the branch of the row. So W workers read at most W·n·D/8 bytes for n
rows and D levels. The table shows this bound beside the measured bytes. The data count as placed when all workers have
prepared their columns and answered the request for the root.
"""

import importlib
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.measuring import print_table, ratio_text, seconds_text

N_WORKERS: Final = (0, 1, 2)
"""Numbers of workers; 0 means one process without a cluster."""
STEP_SECONDS: Final = 900


def print_cluster(kind: str, tables: Mapping[int, Path], limits: Mapping[int, int]) -> None:
    """Print a line for each table and number of workers."""
    lines: list[list[str]] = []
    for n_rows, path in tables.items():
        alone: dict[str, Any] = {}
        for n_workers in N_WORKERS:
            result = _measured(kind, path, limits[n_rows], n_workers)
            alone = alone or result
            lines.append(list(_cells(n_rows, n_workers, result, alone)))
    names = ("rows", "workers", "seconds", "speed-up", "once placed", "speed-up", "levels", "W·n·D/8 MB", "bits MB",
             "answers MB", "copied MB", "same model")  # fmt: skip
    print_table(
        f"Larger than memory: {kind}, columns divided over a local Dask cluster", names, lines,
        "once placed: from the answers for the root to the model. bits: branches of the rows, read by each worker;"
        " answers: candidates and marks; copied: rows of small nodes.",
    )  # fmt: skip


def _cells(n_rows: int, n_workers: int, result: Mapping[str, Any], alone: Mapping[str, Any]) -> Iterator[str]:
    yield f"{n_rows:,}"
    yield str(n_workers or "none")
    for name in ("seconds", "placed"):
        yield seconds_text(result.get(name))
        yield ratio_text(alone.get(name), result.get(name))
    yield str(result.get("levels", "–"))
    wire = n_workers and "bits" in result
    yield f"{n_workers * n_rows * result['levels'] / 8e6:.2f}" if wire else "–"
    for name, factor in (("bits", n_workers), ("answers", 1), ("copied", 1)):
        yield f"{factor * result[name] / 1e6:.2f}" if wire else "–"
    yield result.get("fault") or str(result["model"] == alone.get("model"))


def _measured(kind: str, path: Path, limit: int, n_workers: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale_cluster", kind, str(path), str(limit), str(n_workers)]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS, check=True)  # noqa: S603 - own arguments
    except (subprocess.SubprocessError, OSError) as error:
        return {"fault": type(error).__name__}
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def _trained(kind: str, path: Path, limit: int, n_workers: int) -> dict[str, Any]:
    """Train; return the figures of `watched`, the seconds after the data were placed, the levels, and the bytes."""
    from benchmarks.scale import train_on_disk, watched  # noqa: PLC0415 - it imports this module
    from espalier.growing.levels import grow_levels  # noqa: PLC0415 - only the process that is measured
    from espalier.training import cluster, out_of_core  # noqa: PLC0415 - as above

    counts = {"levels": 0, "bits": 0, "answers": 0, "copied": 0}
    placed_at = 0.0
    module: Any = out_of_core
    growing_type: Any = grow_levels.Growing
    cluster_type: Any = cluster.Cluster
    save, grow, ask = module.save_level, growing_type.grow, cluster_type.answer

    def save_and_count(folder: Path, number: int, level: Any) -> None:
        save(folder, number, level)
        counts["levels"] += 1
        counts["bits"] += sum(mark.vector.packed.nbytes for mark in level.marks.values())

    def place_and_grow(self: Any) -> None:
        nonlocal placed_at
        list(self.ask(lambda worker: worker.root(), self.workers))
        placed_at = time.perf_counter()
        grow(self)

    def ask_and_count(self: Any, *question: Any) -> Any:
        answer = ask(self, *question)
        counts["copied" if "copy_rows" in question else "answers"] += _pickled_bytes(answer)
        return answer

    def train(**options: Any) -> dict[str, Any]:
        result = watched(lambda: train_on_disk(kind, path, limit, **options))
        return {**result, "placed": result["end"] - placed_at, **counts}

    module.save_level, growing_type.grow, cluster_type.answer = save_and_count, place_and_grow, ask_and_count
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        options: dict[str, Any] = {"work": Path(folder) / "work"}
        if not n_workers:
            return train(**options)
        distributed: Any = importlib.import_module("distributed")
        local = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": None, "dashboard_address": None}
        with distributed.LocalCluster(**local, local_directory=folder, silence_logs=50) as local_cluster:
            return train(cluster=local_cluster.scheduler_address, **options)


def _pickled_bytes(answer: Any) -> int:
    """Return the size of a pickled answer, without copying its arrays."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


if __name__ == "__main__":
    own_kind, own_path, own_limit, own_workers = sys.argv[1:]
    print(json.dumps(_trained(own_kind, Path(own_path), int(own_limit), int(own_workers))))
