"""How kernels are compiled and kept: what a first start compiles, where machine code goes, what is said of it."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from espalier import PRESETS, PRUNERS, WARM_UPS
from espalier.config.pruning import pruner_name
from espalier.growing.kernels import sort
from espalier.growing.kernels.constants import Targets
from espalier.growing.kernels.median import ROWS_BETWEEN_CHECKS, prefix_deviations
from espalier.growing.workspace import Medians
from espalier.kernels import kept
from espalier.kernels.jit import compiled, inner, maker, phase_of
from tests.acceptance.running import until
from tests.factories import AS_ANYBODY

ROOT = Path(__file__).resolve().parents[2]
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


@inner
def _put(values, at, value):
    values[at] = max(values[at], value)


@maker
def _longer(values):
    made = np.empty(2 * values.size, values.dtype)
    for at in range(values.size):
        made[at] = values[at]
        made[at + values.size] = 0
    return made


@compiled
def _highest_so_far(values, extra):
    answer = values
    highest = 0
    for at in range(values.size):
        if at == answer.size // 2:
            answer = _longer(answer)
        _put(answer, at, highest)
        highest = answer[at]
    if extra is not None:
        _put(answer, 0, extra[0])
    return answer


@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_functions_of_functions_give_what_python_gives(kind: type) -> None:
    values = np.array([1, 3, 2, 5, 4], dtype=kind)
    assert _highest_so_far(values.copy(), None).tolist() == [1, 3, 3, 5, 5, 0, 0, 0, 0, 0]
    assert _highest_so_far(values.copy(), (7.0,)).tolist() == [7, 3, 3, 5, 5, 0, 0, 0, 0, 0]


class Sums(NamedTuple):
    weight: Any


class Work(NamedTuple):
    sums: Sums
    medians: Medians


@compiled
def _prefixes(targets, work, rows, answer):
    prefix_deviations(targets, work, rows, 0, rows.size, 1, 0, 0, answer)


@pytest.mark.parametrize(("stop", "last_known"), [(0.0, ROWS_BETWEEN_CHECKS + 9), (1.0, ROWS_BETWEEN_CHECKS)])
def test_a_stop_is_seen_within_one_long_scan(stop: float, last_known: int) -> None:
    n_rows = ROWS_BETWEEN_CHECKS + 9
    rows, answer = np.arange(n_rows, dtype=np.int32), np.full(n_rows + 1, -1.0)
    arrays = dict.fromkeys(Medians._fields, np.zeros(1)) | {
        "target_rank": np.zeros(n_rows, np.int32),
        "weight_tree": np.zeros(2),
        "sum_tree": np.zeros(2),
        "progress": np.array([0.0, stop]),
    }
    targets = Targets(np.zeros(n_rows, np.int32), np.zeros(n_rows), np.ones(n_rows))
    _prefixes(targets, Work(Sums(np.ones(n_rows)), Medians(**arrays)), rows, answer)
    # All targets are alike, so nothing deviates; what was not looked at is as it was.
    assert np.all(answer[: last_known + 1] == 0.0)
    assert np.all(answer[last_known + 1 :] == -1.0)


@compiled_only
def test_compiling_is_named_until_the_code_for_these_arguments_is_there() -> None:
    codes, order = np.array([1, 0, 1], dtype=np.int32), np.empty(3, np.int32)
    sort.sort_codes(codes, 2, order)
    assert phase_of(sort.sort_codes, "sorting", (codes, 2, order)) == "sorting"
    others = (codes.astype(np.int16), 2, order)
    assert phase_of(sort.sort_codes, "sorting", others) == "compiling kernels, then sorting"


@compiled_only
@pytest.mark.skipif(sys.platform != "linux", reason="root is told apart by Linux capabilities")
def test_a_read_only_package_folder_without_a_cache_works(package: Path, tmp_path: Path) -> None:
    forbid_writing(package)
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    script = (
        "import numpy as np; from pathlib import Path\n"
        "from espalier.growing.kernels import sort; from espalier.kernels import kept\n"
        "order = np.empty(3, np.int32); sort.sort_codes(np.array([1, 0, 1], np.int32), 2, order)\n"
        "print(sort.__file__, kept.cache_folder(Path(sort.__file__)), order.tolist())"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", AS_ANYBODY, sys.executable, "-c", script]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split(maxsplit=2) == [f"{package}/growing/kernels/sort.py", "None", "[1, 0, 2]\n"]


KEEPING = (
    "import sys, numpy as np; from pathlib import Path\n"
    "from espalier.growing.kernels import sort; from espalier.kernels import kept\n"
    "from espalier.kernels.jit import phase_of\n"
    "for name in sys.argv[1:]:\n"
    "    given = np.array([1, 0, 1], name), 2, np.empty(3, np.int32)\n"
    "    print(phase_of(sort.sort_codes, name, given)); sort.sort_codes(*given)\n"
)


def keep(package: Path, user: Path, *types: str, **environment: str) -> list[str]:
    """Sort codes of these types in a process of its own that is no root; give the phases it named."""
    ours = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(user), "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", AS_ANYBODY, sys.executable, "-c", KEEPING, *types]
    ours |= environment
    done = subprocess.run(command, cwd=user.parent, env=ours, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def kept_codes(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.nbc") if "sort_codes" in path.name]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copy = tmp_path / "installed" / "espalier"
    shutil.copytree(ROOT / "espalier", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def forbid_writing(package: Path) -> None:
    for path in [*package.rglob("*"), package]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@compiled_only
@pytest.mark.skipif(sys.platform != "linux", reason="root is told apart by Linux capabilities")
def test_what_a_read_only_package_keeps_is_found_and_what_it_lacks_is_kept_elsewhere(
    package: Path, tmp_path: Path
) -> None:
    user = tmp_path / "user"
    keep(package, user, "int32")
    assert (len(kept_codes(package)), len(kept_codes(user))) == (1, 0)
    forbid_writing(package)
    assert keep(package, user, "int32", "int16") == ["int32", "compiling kernels, then int16"]
    assert (len(kept_codes(package)), len(kept_codes(user))) == (1, 1)
    assert keep(package, user, "int32", "int16") == ["int32", "int16"]


@compiled_only
@pytest.mark.skipif(sys.platform != "linux", reason="as above")
def test_code_made_for_a_baseline_is_found_by_the_processor_at_hand(package: Path, tmp_path: Path) -> None:
    keep(package, tmp_path, "int32", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert keep(package, tmp_path, "int32") == ["int32"]
    assert len(kept_codes(tmp_path)) == 1


def test_a_baseline_is_for_processors_that_have_all_of_it() -> None:
    # LLVM's own list for -mcpu=x86-64-v3, and what Haswell's predecessor lacks of it.
    third = "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
    assert kept.baselines_of(f"{third},+avx512f,-sha") == ("x86-64-v3", "generic")
    assert kept.baselines_of(third.replace("+avx2", "-avx2")) == ("generic",)
    assert kept.baselines_of("+neon,+fp-armv8") == ("generic",)
    assert kept.baselines_of("") == ("generic",)


@compiled_only
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells who waits for a lock")
def test_one_process_at_a_time_writes_to_the_folder(package: Path, tmp_path: Path) -> None:
    keep(package, tmp_path, "int32")
    [folder] = {path.parent for path in kept_codes(package)}
    with (folder / "lock").open("w") as lock, ThreadPoolExecutor(1) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = pool.submit(keep, package, tmp_path, "int16")
        inode = os.fstat(lock.fileno()).st_ino
        until(lambda: re.search(rf"-> FLOCK .*:{inode} ", Path("/proc/locks").read_text()), what="the other's waiting")
        assert len(kept_codes(package)) == 1
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert other.result() == ["compiling kernels, then int16"]
    assert len(kept_codes(package)) == 2


def test_every_preset_and_every_pruning_method_is_warmed_up() -> None:
    courses = [course for part in WARM_UPS.values() for course in part]
    assert {course.preset for course in courses} == set(PRESETS)
    pruned = {method for course in courses for method, _ in course.prunings}
    assert pruned | {pruner_name(PRESETS[one].pruning) for one in PRESETS if PRESETS[one].pruning} == set(PRUNERS)
