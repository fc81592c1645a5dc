"""The wheel, built where no C compiler is found and used where there is none."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.factories import ROOT

MAX_BYTES = 6_000_000
# What a header has that declares more than constants.
DECLARES = re.compile(r"\b(?:cdef class|cpdef|nogil)\b")
TRAINING = """
import sys
import espalier

assert espalier.__file__.startswith(sys.argv[1]), espalier.__file__
for preset in ("cart", "c45"):
    data = espalier.dataset_from_csv("wind,play\\nweak,yes\\nweak,yes\\nstrong,no\\nstrong,no\\n", target="play")
    model = espalier.train(data, preset, min_weight_leaf=1)
    assert espalier.predict(model, [{"wind": "strong"}])[0].label == "no"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the committed files, built with nothing on PATH: zig's compiler is fetched for the build."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    environment = os.environ | {"PATH": str(folder / "nothing"), "HOME": str(folder)}
    environment.pop("CC", None)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_one_wheel_serves_every_python_and_is_small(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    assert wheel.stat().st_size < MAX_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    headers = [path for path in (ROOT / "espalier").rglob("*.pxd") if DECLARES.search(path.read_text())]
    compiled = {Path(name.removesuffix(".abi3.so")) for name in names if name.endswith(".so")}
    assert compiled == {Path("espalier/_cython"), *(header.with_suffix("").relative_to(ROOT) for header in headers)}


@pytest.mark.slow
def test_it_trains_where_there_is_no_compiler(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    environment = {"PATH": str(tmp_path / "nothing"), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", TRAINING, str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
