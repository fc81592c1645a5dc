"""Training on a table that stays on disk: the same document, bounded memory, and what happens when it fails."""

import hashlib
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from espalier import (
    Cancelled,
    ConfigError,
    DataError,
    Dataset,
    Progress,
    dataset_from_file,
    dataset_from_rows,
    to_json,
    train,
)
from espalier.training import out_of_core
from tests.core.data_sets import refused
from tests.factories import ROOT

LIMIT = 2**24
N_ROWS = 4_000


def table(n_rows: int = N_ROWS, *, holes: bool = False, seed: int = 3) -> pyarrow.Table:
    """Numbers and categories, a target of two classes and one of numbers, weights."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{place}": random.standard_normal(n_rows).round(3) for place in range(4)}
    columns["kind"] = random.choice(list("abcdefg"), n_rows)
    signal_ = columns["x0"] + columns["x1"] * columns["x2"] + (columns["kind"] == "a")
    columns["weight"] = random.choice([0.0, 0.5, 1.25], n_rows)
    columns["number"] = signal_ + random.standard_normal(n_rows) * 0.3
    columns["label"] = np.where(columns["number"] > 0.2, "yes", "no")
    absent = random.random(n_rows) < 0.1
    given = {
        name: pyarrow.array(column, mask=absent if holes and name in {"x1", "kind"} else None)
        for name, column in columns.items()
    }
    return pyarrow.table(given)


def write(rows: pyarrow.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(rows, path, row_group_size=1_000)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    elif path.suffix == ".arrow":
        with pyarrow.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=700)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    return path


def declared(target: str, *, weighted: bool = False) -> dict[str, Any]:
    aside = {"weight", "number", "label"} - {target} - ({"weight"} if weighted else set())
    return {"target": target, "ignore": sorted(aside), **({"weight": "weight"} if weighted else {})}


def both(path: Path, preset: str, told: dict[str, Any], **fields: Any) -> tuple[Any, Any]:
    """The document of the training in memory, and of the one on disk."""
    in_memory = train(dataset_from_file(path, **told), preset, **fields)
    return to_json(in_memory), to_json(train(path, preset, declared=told, memory_limit=LIMIT, **fields))


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(out_of_core.PREFIX)]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run_python(code: str, *arguments: Any, temporary: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(temporary),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed goes back at once
    }
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, **options)


# The same document


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("target", "preset"), [("label", "cart"), ("label", "c45"), ("label", "j48"), ("number", "cart")]
)
def test_the_document_is_that_of_the_training_in_memory(
    tmp_path: Path, target: str, preset: str, *, weighted: bool, holes: bool
) -> None:
    path = write(table(holes=holes), tmp_path / "table.parquet")
    in_memory, on_disk = both(path, preset, declared(target, weighted=weighted))
    assert on_disk == in_memory
    assert leftovers(Path(tempfile.gettempdir())) == []


@pytest.mark.parametrize("ending", ["csv", "ndjson", "arrow"])
def test_every_format_that_is_read_row_by_row_is_taken(tmp_path: Path, ending: str) -> None:
    path = write(table(1_500, holes=True), tmp_path / f"table.{ending}")
    in_memory, on_disk = both(path, "cart", declared("label"), missing="fractional")
    assert on_disk == in_memory


def test_numbers_alone_are_grown_by_the_binary_grower_and_imputed_values_are_learned_per_column(tmp_path: Path) -> None:
    rows = table(holes=True).drop_columns(["kind"])
    path = write(rows, tmp_path / "table.parquet")
    for target in ("label", "number"):
        in_memory, on_disk = both(path, "cart", declared(target), missing="imputed", threshold="observed")
        assert on_disk == in_memory


def test_id3_and_costs_are_taken(tmp_path: Path) -> None:
    path = write(table(800, holes=True), tmp_path / "table.parquet")
    in_memory, on_disk = both(
        path, "id3", {**declared("label"), "ignore": ["x0", "x1", "x2", "x3", "weight", "number"]}
    )
    assert on_disk == in_memory
    costs = {"cost_function": "norton", "attribute_costs": {"x0": 4.0}, "missing": "fractional", "max_depth": 5}
    in_memory, on_disk = both(path, "cart", declared("label"), **costs)
    assert on_disk == in_memory


def test_files_of_a_folder_are_one_table(tmp_path: Path) -> None:
    rows, folder = table(), tmp_path / "parts"
    folder.mkdir()
    for place in range(3):
        write(rows.slice(place * 1_500, 1_500), folder / f"part-{place}.parquet")
    whole = train(dataset_from_file(write(rows, tmp_path / "whole.parquet"), **declared("label")), "c45")
    parts = train(folder, "c45", declared=declared("label"), memory_limit=LIMIT)
    assert to_json(parts) == to_json(whole)


@pytest.mark.parametrize("limit", ["1GB", True, math.nan, 2**24 - 1, -1])
def test_a_limit_that_is_no_number_of_bytes_is_refused(tmp_path: Path, limit: Any) -> None:
    path = write(table(10), tmp_path / "rows.parquet")
    again = lambda: train(path, declared=declared("label"), memory_limit=limit)  # noqa: E731
    assert refused(ConfigError, again) == [("/memory_limit", "not_legal")]


def test_data_sets_one_below_the_other_are_one_table(tmp_path: Path) -> None:
    whole = dataset_from_file(write(table(holes=True), tmp_path / "table.parquet"), **declared("label"))
    whole = whole.take(np.argsort(~np.isnan(whole.columns[1]), kind="stable"))  # missing cells are in the first part
    bounds = [0, 700, 700, 3_000, N_ROWS]  # the second has no rows
    parts = (Dataset(whole.schema, tuple(whole.slice(*each))) for each in itertools.pairwise(bounds))
    read: list[Dataset] = []
    model = train(parts, "c45", memory_limit=LIMIT, on_read=read.append)
    assert to_json(model) == to_json(train(whole, "c45"))
    assert [each.n_rows for each in read] == [N_ROWS]


def test_data_sets_that_are_no_table_are_refused(tmp_path: Path) -> None:
    one, other = (dataset_from_rows([{"a": 1.0, "y": "p"}, {"a": 2.0, "y": label}], target="y") for label in ("q", "r"))
    nothing = Dataset(one.schema, tuple(column[:0] for column in one.columns))
    kinds = ([1, True], [True, 1])  # equal in Python
    alike = [dataset_from_rows([{"a": "p", "y": k} for k in each], schema=_of_labels(each)) for each in kinds]
    for given, code in (
        ([], "empty"), ([nothing], "empty"), ([one, other], "other_columns"), (alike, "other_columns"),
        (["table.csv"], "wrong_type"), ([table(10)], "wrong_type"), ([one, None], "wrong_type"),
    ):  # fmt: skip
        again = lambda given=given: train(iter(given), memory_limit=LIMIT)  # noqa: E731
        assert refused(DataError, again) == [("", code)]
    assert refused(ConfigError, lambda: train(iter([one]), target="y", memory_limit=LIMIT)) == [
        ("/target", "not_legal")
    ]


def _of_labels(labels: list[Any]) -> dict[str, Any]:
    return {"target": "y", "columns": [{"name": "y", "kind": "nominal", "categories": labels}]}


# Bounded memory

UNDER_A_LIMIT = """
import hashlib, os, resource, sys
from pathlib import Path
import espalier
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # each thread has a stack
path, tiny, allowed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
fields = {"target": "label", "max_depth": 3, "memory_limit": allowed // 2}  # the rest is for reading
espalier.train(tiny, **fields)  # loads what is needed, and starts its threads
status = Path("/proc/self/status").read_text()
used = 1024 * int(next(line for line in status.splitlines() if line.startswith("VmSize")).split()[1])
resource.setrlimit(resource.RLIMIT_AS, (used + allowed, used + allowed))
document = espalier.to_json(espalier.train(path, **fields))
print(hashlib.sha256(document if isinstance(document, bytes) else document.encode()).hexdigest())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_table_of_twice_the_allowed_memory_is_learned_from(tmp_path: Path, temporary: Path) -> None:
    n_rows, n_columns = 300_000, 50
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{place}": random.standard_normal(n_rows) for place in range(n_columns)}
    columns["label"] = np.where(columns["x0"] + columns["x1"] * columns["x2"] > 0.3, "yes", "no")
    rows = pyarrow.table(columns)
    path, tiny = tmp_path / "table.parquet", tmp_path / "tiny.parquet"
    pyarrow.parquet.write_table(rows, path, row_group_size=10_000)
    pyarrow.parquet.write_table(rows.slice(0, 500), tiny)
    allowed = n_rows * n_columns * 8 // 2
    done = run_python(UNDER_A_LIMIT, path, tiny, allowed, temporary=temporary)
    assert done.returncode == 0, done.stderr
    document = to_json(train(dataset_from_file(path, target="label"), max_depth=3))
    content = document if isinstance(document, bytes) else document.encode()
    assert done.stdout.strip() == hashlib.sha256(content).hexdigest()


def test_rows_that_do_not_fit_are_refused_with_what_they_need(tmp_path: Path) -> None:
    path = write(table(450_000).select(["x0", "label"]), tmp_path / "table.parquet")
    assert refused(ConfigError, lambda: train(path, target="label", memory_limit=LIMIT)) == [
        ("/memory_limit", "too_small")
    ]


# Killed, stopped, started again

KILLED = """
import hashlib, os, sys
import espalier
from espalier.training import out_of_core
path, work, n_levels = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
save, grow = out_of_core.save_level, out_of_core.grow_by_levels
def save_and_die(folder, number, level):
    save(folder, number, level)
    if number + 1 == n_levels:
        os.kill(os.getpid(), 9)
out_of_core.save_level = save_and_die
if work is None:
    out_of_core.grow_by_levels = lambda *_: os.kill(os.getpid(), 9)
declared = {"target": "label", "ignore": ["weight", "number"]}
fields = {"missing": "fractional", "max_depth": 9}
model = espalier.train(path, "cart", memory_limit=2**24, work=work, declared=declared, **fields)
print(hashlib.sha256(str(espalier.to_json(model)).encode()).hexdigest())
"""


@pytest.mark.parametrize("n_levels", [1, 4])
def test_a_training_that_is_killed_goes_on_after_its_last_level(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, n_levels: int
) -> None:
    path, work = write(table(12_000, holes=True), tmp_path / "table.parquet"), tmp_path / "work"
    monkeypatch.setattr(out_of_core, "BYTES_A_CELL", 2_000)  # more levels, fewer nodes that are copied
    code = KILLED.replace("path, work", "out_of_core.BYTES_A_CELL = 2_000\npath, work", 1)
    done = run_python(code, path, work, n_levels, temporary=temporary)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(work.glob("level-*.npz"))) == n_levels
    numbers: list[int] = []
    save = out_of_core.save_level
    monkeypatch.setattr(
        out_of_core, "save_level", lambda folder, number, level: (numbers.append(number), save(folder, number, level))
    )
    told = declared("label")
    fields: dict[str, Any] = {"missing": "fractional", "max_depth": 9}
    resumed = train(path, "cart", memory_limit=LIMIT, work=work, declared=told, **fields)
    assert numbers[0] == n_levels
    assert to_json(resumed) == to_json(train(dataset_from_file(path, **told), "cart", **fields))
    assert not work.exists()


@pytest.mark.parametrize(
    ("name", "content", "first"),
    [
        ("level-00002.npz", lambda whole: whole[: len(whole) // 2], 2),
        ("level-00001.npz", lambda whole: bytes(len(whole)), 1),
        ("level-00000.npz", lambda _: b"", 0),
        (out_of_core.TRAINING, lambda whole: whole[:-1], 0),
        (out_of_core.TRAINING, lambda whole: bytes(len(whole)), 0),
    ],
)
def test_a_file_that_a_loss_of_power_has_cut_costs_what_comes_after_it(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, *, name: str, content: Any, first: int
) -> None:
    path, work = write(table(12_000, holes=True), tmp_path / "table.parquet"), tmp_path / "work"
    monkeypatch.setattr(out_of_core, "BYTES_A_CELL", 2_000)
    code = KILLED.replace("path, work", "out_of_core.BYTES_A_CELL = 2_000\npath, work", 1)
    assert run_python(code, path, work, 4, temporary=temporary).returncode == -signal.SIGKILL
    (work / name).write_bytes(content((work / name).read_bytes()))
    numbers: list[int] = []
    save = out_of_core.save_level
    monkeypatch.setattr(
        out_of_core, "save_level", lambda folder, number, level: (numbers.append(number), save(folder, number, level))
    )
    fields: dict[str, Any] = {"missing": "fractional", "max_depth": 9}
    resumed = train(path, "cart", memory_limit=LIMIT, work=work, declared=declared("label"), **fields)
    assert numbers[0] == first
    assert to_json(resumed) == to_json(train(dataset_from_file(path, **declared("label")), "cart", **fields))


def test_a_training_that_is_killed_after_every_level_ends_with_the_same_model(tmp_path: Path, temporary: Path) -> None:
    path, work = write(table(holes=True), tmp_path / "table.parquet"), tmp_path / "work"
    code = KILLED.replace("path, work", "out_of_core.BYTES_A_CELL = 2_000\npath, work", 1).replace(
        '"max_depth": 9', '"max_depth": 4'
    )
    n_levels, done = 0, None
    while done is None or done.returncode == -signal.SIGKILL:
        n_levels += 1
        done = run_python(code, path, work, n_levels, temporary=temporary)
    assert (done.returncode, n_levels > 3) == (0, True), done.stderr
    expected = train(dataset_from_file(path, **declared("label")), "cart", missing="fractional", max_depth=4)
    assert done.stdout.strip() == hashlib.sha256(str(to_json(expected)).encode()).hexdigest()


def test_what_a_killed_training_has_left_is_removed_by_the_next_one(tmp_path: Path, temporary: Path) -> None:
    path = write(table(500), tmp_path / "table.parquet")
    done = run_python(KILLED, path, "", 0, temporary=temporary)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(leftovers(temporary)) == 1
    train(path, declared=declared("label"), memory_limit=LIMIT)
    assert leftovers(temporary) == []


def test_a_folder_that_is_in_use_is_neither_removed_nor_shared(tmp_path: Path, temporary: Path) -> None:
    path, work = write(table(500), tmp_path / "table.parquet"), tmp_path / "work"
    with out_of_core.work_folder(None) as folder, out_of_core.work_folder(work):
        train(path, declared=declared("label"), memory_limit=LIMIT)
        assert leftovers(temporary) == [folder.name]
        again = lambda: train(path, declared=declared("label"), memory_limit=LIMIT, work=work)  # noqa: E731
        assert refused(ConfigError, again) == [("/work", "in_use")]


def test_a_folder_that_is_removed_while_another_training_opens_it_has_one_user_at_a_time(tmp_path: Path) -> None:
    work, users, errors = tmp_path / "work", threading.Lock(), []

    def use_often() -> None:
        for _ in range(1_000):
            try:
                with out_of_core.work_folder(work):
                    assert users.acquire(blocking=False)
                    (work / out_of_core.TRAINING).write_text("")
                    (work / "column-0").write_text("")
                    users.release()
            except ConfigError as error:
                errors.append(error.faults[0].code)

    with ThreadPoolExecutor(4) as pool:
        for user in [pool.submit(use_often) for _ in range(4)]:
            user.result()
    assert set(errors) == {"in_use"}


def test_a_stopped_training_leaves_only_a_named_folder(tmp_path: Path, temporary: Path) -> None:
    path, work = write(table(500), tmp_path / "table.parquet"), tmp_path / "work"
    for named in (None, work):
        progress = Progress()
        progress.stop()
        with pytest.raises(Cancelled):
            train(path, declared=declared("label"), memory_limit=LIMIT, work=named, progress=progress)
    assert leftovers(temporary) == []
    assert work.exists()
    train(path, declared=declared("label"), memory_limit=LIMIT, work=work)
    assert not work.exists()


def test_a_stop_ends_the_reading(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, progress = write(table(), tmp_path / "table.parquet"), Progress()
    progress.stop()
    monkeypatch.setattr(out_of_core, "grow_by_levels", None)
    with pytest.raises(Cancelled):
        train(path, declared=declared("label"), memory_limit=LIMIT, progress=progress)
    assert leftovers(temporary) == []


def test_a_folder_of_another_training_or_of_other_files_is_refused(tmp_path: Path) -> None:
    path, work = write(table(500), tmp_path / "table.parquet"), tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("mine")
    again = lambda **fields: train(path, declared=declared("label"), memory_limit=LIMIT, work=work, **fields)  # noqa: E731
    assert refused(ConfigError, again) == [("/work", "not_empty")]
    (work / "notes.txt").rename(work / out_of_core.LOCK)
    (work / out_of_core.TRAINING).write_text(json.dumps({"training": "another"}))
    assert refused(DataError, again) == [("/work", "other_training")]
    work.mkdir(exist_ok=True)
    for name in (out_of_core.LOCK, "mine.csv"):
        (work / name).touch()
    assert refused(ConfigError, again) == [("/work", "not_empty")]
    assert (work / "mine.csv").exists()


def test_an_error_leaves_the_levels_of_an_interrupted_training_and_nothing_else(
    tmp_path: Path, temporary: Path
) -> None:
    path, work = write(table(), tmp_path / "table.parquet"), tmp_path / "work"
    code = KILLED.replace("path, work", "out_of_core.BYTES_A_CELL = 2_000\npath, work", 1)
    done = run_python(code, path, work, 1, temporary=temporary)
    assert done.returncode == -signal.SIGKILL, done.stderr
    kept = {out_of_core.LOCK, out_of_core.TRAINING, "level-00000.npz"}
    again = lambda table, **fields: train(table, declared=declared("label"), memory_limit=LIMIT, work=work, **fields)  # noqa: E731
    assert refused(DataError, lambda: again(path, max_depth=2)) == [("/work", "other_training")]
    assert {each.name for each in work.iterdir()} == kept
    (tmp_path / "half.parquet").write_bytes(path.read_bytes()[:1_000])
    assert refused(DataError, lambda: again(tmp_path / "half.parquet")) == [("", "not_readable")]
    assert {each.name for each in work.iterdir()} == kept


@pytest.mark.parametrize("name", ["nowhere/work", "table.parquet", "link", "locked"])
def test_a_work_folder_that_cannot_be_used_is_refused(tmp_path: Path, name: str) -> None:
    path = write(table(300), tmp_path / "table.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "locked" / "column-0").mkdir(parents=True)
    (tmp_path / "locked" / out_of_core.LOCK).touch()
    again = lambda: train(path, declared=declared("label"), memory_limit=LIMIT, work=tmp_path / name)  # noqa: E731
    assert refused(ConfigError, again) == [("/work", "not_writable")]


# What cannot be read or written


def test_what_is_not_taken_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    fields = {"missing": "surrogate", "pruning": {"method": "reduced_error"}, "holdout": {"fraction": 0.2}}
    faults = refused(ConfigError, lambda: train(tmp_path / "nowhere.parquet", memory_limit=1, **fields))
    assert [path for path, _ in faults] == ["/missing", "/holdout", "/pruning", "/memory_limit"]


def test_a_table_in_memory_is_no_source_and_files_need_a_limit(tmp_path: Path) -> None:
    data = dataset_from_rows([{"a": 1.0, "y": "p"}, {"a": 2.0, "y": "q"}], target="y")
    assert refused(ConfigError, lambda: train(data, memory_limit=LIMIT)) == [("/dataset", "wrong_type")]
    assert refused(ConfigError, lambda: train(data, work=tmp_path)) == [("/work", "combination")]


def test_half_a_parquet_file_is_refused_and_nothing_stays(tmp_path: Path, temporary: Path) -> None:
    path = write(table(), tmp_path / "table.parquet")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for work in (None, tmp_path / "work"):
        again = lambda work=work: train(path, declared=declared("label"), memory_limit=LIMIT, work=work)  # noqa: E731
        assert refused(DataError, again) == [("", "not_readable")]
    assert leftovers(temporary) == []
    assert not (tmp_path / "work").exists()


def test_a_file_with_other_columns_than_the_first_is_refused_by_column(tmp_path: Path) -> None:
    folder, rows = tmp_path / "parts", table(300)
    folder.mkdir()
    write(rows, folder / "a.parquet")
    changed = (
        rows.drop_columns(["x1"]).set_column(0, "x0", pyarrow.array(["text"] * 300)).append_column("x9", rows["x1"])
    )
    write(changed, folder / "b.parquet")
    again = lambda: train(folder, declared=declared("label"), memory_limit=LIMIT)  # noqa: E731
    assert refused(DataError, again) == [(f"/{name}", "other_columns") for name in ("x1", "x0", "x9")]
    with pytest.raises(DataError, match=r"b\.parquet"):
        again()


FULL_DISK = """
import resource, sys
import espalier
espalier.train(sys.argv[1], "cart", memory_limit=2**24, max_depth=1, declared={"target": "label"})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    espalier.train(sys.argv[2], "cart", memory_limit=2**24, declared={"target": "label"})
except espalier.DataError as error:
    print([(fault.path, fault.code) for fault in error.faults])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_an_error_and_nothing_stays(tmp_path: Path, temporary: Path) -> None:
    tiny, path = write(table(300), tmp_path / "tiny.parquet"), write(table(50_000), tmp_path / "table.parquet")
    done = run_python(FULL_DISK, tiny, path, 10**6, temporary=temporary)
    assert done.stdout.strip() == "[('/work', 'disk_full')]", done.stderr
    assert leftovers(temporary) == []
