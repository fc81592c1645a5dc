"""What follows growing is compiled in a second process: it must be just what the training then asks for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from espalier import Progress, training_config
from espalier.ahead import PHASES, compiling_ahead
from espalier.errors import Cancelled

ROOT = Path(__file__).resolve().parents[2]
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

LOOKING = """
import sys
from espalier import dataset_from_rows, train
from espalier.kernels import {module}
from espalier.kernels.jit import _is_kept
from espalier.small_work import always_compiled

kernel, kept = {module}.{kernel}, []
def watched(*arguments):
    kept.append(_is_kept(kernel, arguments))
    return kernel(*arguments)
{module}.{kernel} = watched
rows = [{{"x": i, "z": "ab"[i % 3 > 0], "y": {label}}} for i in range(12)]
with always_compiled():
    train(dataset_from_rows(rows, target="y"), "{preset}")
print(kept)
"""


def python(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@compiled_only
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "preset", "label"),
    [("pessimistic", "c45", "str(i > 5)"), ("reduced_error", "reptree", "str(i > 5)"), ("linear", "m5", "i + 0.5")],
)
def test_what_is_compiled_ahead_is_what_training_calls(tmp_path: Path, name: str, preset: str, label: str) -> None:
    phase = PHASES[name]
    python(tmp_path, "-m", "espalier.ahead", name)
    module = phase.module.rpartition(".")[2]
    looked = python(tmp_path, "-c", LOOKING.format(module=module, kernel=phase.kernel, label=label, preset=preset))
    assert set(looked.strip("[]\n").split(", ")) == {"True"}


@compiled_only
def test_a_stop_ends_the_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Progress()
    monkeypatch.setattr("espalier.ahead._is_worth_it", lambda _phase: True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with pytest.raises(Cancelled), compiling_ahead(training_config("c45"), watch):
        watch.stop()


def test_a_program_that_holds_an_interpreter_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("espalier.kernels.jit.must_compile", lambda _kernel: True)
    monkeypatch.setattr("espalier.ahead._child", lambda name: pytest.fail(f"started a process for {name}"))
    for name in ("/usr/bin/uwsgi", ""):
        monkeypatch.setattr(sys, "executable", name)
        with compiling_ahead(training_config("c45"), Progress()):
            pass
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with compiling_ahead(training_config("c45"), Progress()):
        pass
