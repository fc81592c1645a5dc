"""The program ``espalier``: how it ends when it is interrupted, lacks memory or a library, or gets odd arguments."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.acceptance.running import answers, environment_for, free_port, run_command, until
from tests.factories import ROOT

APART = ("unshare", "--mount")
CAN_BE_APART = (
    sys.platform == "linux" and subprocess.run([*APART, "true"], capture_output=True, check=False).returncode == 0
)


def test_ctrl_c_during_the_imports_ends_the_program_silently(tmp_path: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, function = scripts["espalier"].split(":")
    interrupt = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "lazy_loader.py").write_text(interrupt)  # the first library that the program imports
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    words = [sys.executable, "-c", program, "presets"]
    environment = environment_for(tmp_path) | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ended = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_program_without_enough_memory_says_so_in_one_line(tmp_path: Path) -> None:
    short = "def dataset_from_file(*_, **__):\n    raise MemoryError\n"
    script = (
        f"{short}import sys, espalier, service.cli.__main__ as cli\nespalier.dataset_from_file = dataset_from_file\n"
    )
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n")
    train = ["train", str(tmp_path / "t.csv"), "--target", "y", "--out", str(tmp_path / "m.json")]
    words = [sys.executable, "-c", f"{script}sys.exit(cli.main())", *train]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "espalier: there is not enough memory\n")


def test_the_driver_of_postgresql_is_in_the_extra_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ModuleNotFoundError('No module named psycopg', name='psycopg')\n")
    url = {"ESPALIER_DATABASE_URL": "postgresql+psycopg://me@127.0.0.1:1/x", "PYTHONPATH": str(tmp_path)}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [extra] = (name for name, needed in extras.items() if any(each.startswith("psycopg") for each in needed))
    for command in ("migrate", "doctor"):
        refused = run_command([command], env=environment_for(tmp_path) | url)
        said = f"espalier: this command needs psycopg: pip install 'espalier[{extra}]'\n"
        assert (refused.returncode, refused.stderr) == (2, said)


def test_ctrl_c_before_the_supervisor_handles_signals_ends_the_service(tmp_path: Path) -> None:
    interrupted = "def run(_):\n    raise KeyboardInterrupt\n"
    script = f"{interrupted}import sys, service, service.cli.server as server\nserver.Supervisor.run = run\n"
    words = [sys.executable, "-c", f"{script}sys.exit(service.main())", "up", "--port", str(free_port())]
    with subprocess.Popen(words, cwd=ROOT, env=environment_for(tmp_path), stderr=subprocess.PIPE, text=True) as process:
        try:
            _, printed = process.communicate(timeout=30)  # the greeting waits for the web server for 60 s
        finally:
            process.kill()
    assert (process.returncode, printed) == (130, "")


@pytest.mark.skipif(not CAN_BE_APART, reason="this user may make no mount namespace")
def test_a_shared_memory_that_cannot_be_written_is_not_used(tmp_path: Path) -> None:
    port = free_port()
    script = 'mount -t tmpfs -o ro none /dev/shm && exec "$@"'
    words = [*APART, "sh", "-c", script, "sh", sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    with subprocess.Popen(words, cwd=ROOT, env=environment_for(tmp_path), stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/livez") or process.poll() is not None, what="the start")
            assert process.poll() is None
        finally:
            process.terminate()


@pytest.mark.parametrize("number", ["99999999999999999999", "-1", "0"])
def test_what_is_no_socket_is_refused_in_one_line(tmp_path: Path, number: str) -> None:
    refused = run_command(["serve", "--socket", number], env=environment_for(tmp_path), stdin=subprocess.DEVNULL)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"espalier: --socket {number}: cannot be used: ")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["bücher.example", "почта.example"])
def test_a_host_name_of_other_letters_is_looked_up(tmp_path: Path, host: str) -> None:
    port = str(free_port())
    asked = run_command(["ready", "--host", host, "--port", port], env=environment_for(tmp_path))
    said = f"espalier: the web server at http://{host.encode('idna').decode()}:{port} is not ready\n"
    assert (asked.returncode, asked.stderr) == (1, said)
