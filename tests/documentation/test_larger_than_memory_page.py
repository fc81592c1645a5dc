"""The commands of the page on tables that are larger than memory, run in their order."""

import re
import subprocess
import sys
from pathlib import Path

import espalier
from espalier.growing.levels.table import REASONS
from espalier.training.out_of_core import BYTES_A_ROW
from tests.dask_cluster import local_cluster
from tests.documentation.pages import text_of
from tests.factories import ROOT

PAGE = text_of("how-to/larger_than_memory.md")


def test_its_commands_run_and_the_models_are_equal(tmp_path: Path) -> None:
    commands = re.findall(r"^    espalier (.*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) == 3

    for command in commands:
        words = command.replace("service/examples/", f"{ROOT}/service/examples/").split()
        environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [sys.executable, "-m", "service.cli", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if "64MB" in command:
            assert (tmp_path / "in_memory.json").read_bytes() == (tmp_path / "on_disk.json").read_bytes()
    assert not (tmp_path / "work").exists()


def test_its_line_of_python_is_right(tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_text("a,label\n" + "1,yes\n2,no\n" * 10)
    line = re.search(r"^model = (.*)$", PAGE, flags=re.MULTILINE)
    assert line is not None
    code = line[1].replace("big.parquet", str(tmp_path / "big.csv"))
    check = f"import espalier\nmodel = {code}\nassert model.tree.n_leaves == 2"
    subprocess.run([sys.executable, "-c", check], env={"PYTHONPATH": str(ROOT)}, check=True)


def test_its_command_for_a_cluster_makes_the_model_of_one_process(tmp_path: Path) -> None:
    command = re.search(r"^espalier (.* --cluster) tcp://", PAGE, flags=re.MULTILINE)
    assert command is not None
    table, out = tmp_path / "big.csv", tmp_path / "model.json"
    table.write_text("a,label\n" + "".join(f"{row * 37 % 101},{'yes' if row % 3 else 'no'}\n" for row in range(600)))
    words = command[1].replace("big.parquet", str(table)).replace("/shared", str(tmp_path)).split()
    with local_cluster(2) as cluster:
        run = [sys.executable, "-m", "service.cli", *words, cluster.scheduler_address, "--out", str(out)]
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = espalier.train(espalier.dataset_from_file(table, target="label"), "cart")
    assert out.read_bytes() == espalier.to_json(expected)


def test_it_lists_what_is_refused_and_the_memory_of_a_row() -> None:
    assert [name for name in REASONS if f"`{name}`" not in PAGE] == []
    assert f"{BYTES_A_ROW}·n bytes" in PAGE
