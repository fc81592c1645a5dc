"""The commands up, serve, worker, migrate as a person uses them: real processes, their output, their exit codes."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import espalier
from service.cli.__main__ import COMMANDS
from service.cli.server import METRICS_MEMORY, METRICS_PREFIX
from tests.acceptance.running import (
    Running,
    answers,
    begun_upload,
    environment_for,
    free_port,
    held,
    is_alive,
    listens,
    run_command,
    running,
    unread,
    until,
)
from tests.factories import AS_ANYBODY, ROOT
from tests.service.waiting import PATIENCE


def test_help_needs_no_web_framework_no_database_and_no_kernels() -> None:
    script = (
        "import sys, service.cli.__main__ as cli; cli.parser().format_help();"
        "print({'flask', 'sqlalchemy', 'numpy', 'marshmallow'} & set(sys.modules))"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


def test_the_process_that_watches_over_the_others_loads_no_arrays_and_no_database() -> None:
    script = (
        "import sys, service.cli.examples, service.settings; service.settings.Settings.from_env();"
        "print({'espalier.model', 'sqlalchemy', 'numpy', 'pyarrow'} & set(sys.modules))"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


def test_the_version_is_shown() -> None:
    shown = run_command(["--version"])
    assert (shown.returncode, shown.stdout) == (0, f"espalier {espalier.__version__}\n")


def test_a_command_whose_libraries_are_not_installed_says_what_to_install(tmp_path: Path) -> None:
    missing = "raise ModuleNotFoundError('No module named sqlalchemy', name='sqlalchemy')\n"
    (tmp_path / "sqlalchemy.py").write_text(missing)
    refused = run_command(["migrate"], env=environment_for(tmp_path) | {"PYTHONPATH": str(tmp_path)})
    assert refused.returncode == 2
    assert refused.stderr == "espalier: this command needs sqlalchemy: pip install 'espalier[service]'\n"


def test_every_command_is_in_the_help_with_its_sentence() -> None:
    shown = " ".join(run_command(["--help"]).stdout.split())
    assert all(name in shown and command.summary in shown for name, command in COMMANDS.items())


def test_an_address_that_others_can_reach_is_refused(tmp_path: Path) -> None:
    for command in ("up", "serve"):
        refused = run_command([command, "--host", "0.0.0.0"], env=environment_for(tmp_path))  # noqa: S104 - refused
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1
        assert "127.0.0.1" in refused.stderr


def test_every_wrong_setting_is_said_at_once(tmp_path: Path) -> None:
    wrong = {"ESPALIER_PORT": "http", "ESPALIER_WEB_THREADS": "0"}
    refused = run_command(["up"], env=environment_for(tmp_path) | wrong)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 2
    assert all(name in refused.stderr for name in wrong)


def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        for command in ("up", "serve"):
            refused = run_command([command, "--port", port], env=environment_for(tmp_path))
            assert refused.returncode == 2
            assert refused.stderr.count("\n") == 1
            assert f"port {port}" in refused.stderr
            assert "--port" in refused.stderr


def test_beside_one_that_runs_no_second_starts_on_its_database_and_it_is_known_to_be_ready(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        second = run_command(["up", "--port", str(free_port())], env=environment_for(tmp_path))
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1
        assert first.address in second.stderr
        assert first.get("/readyz") == {"status": "ready"}
        port = first.address.rpartition(":")[2]
        for host in ("127.0.0.1", "0.0.0.0"):  # noqa: S104 - asked at the loopback address
            asked = run_command(["ready", "--host", host, "--port", port])
            assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
    asked = run_command(["ready", "--port", port])
    assert (asked.returncode, asked.stderr) == (1, f"espalier: the web server at {first.address} is not ready\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_ends_everything_and_says_so(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as one:
        processes = everything_under(one)
        printed = one.output()
        one.process.send_signal(number)
        assert one.process.wait(timeout=PATIENCE) == 0
        assert [process for process in processes if is_alive(process)] == []
        assert one.output() == printed + "espalier: stopped\n"


def test_under_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does; the process inherits it
    try:
        with running(tmp_path) as one:
            one.process.send_signal(signal.SIGHUP)
            with pytest.raises(subprocess.TimeoutExpired):
                one.process.wait(timeout=2)
            assert one.get("/readyz") == {"status": "ready"}
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_examples_are_loaded_though_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "service.cli", "up", "--examples", "--port", str(port)]
    reading, writing = os.pipe()
    os.close(reading)
    environment = environment_for(tmp_path)
    with subprocess.Popen(command, env=environment, stdout=writing, stderr=subprocess.PIPE, text=True) as process:
        os.close(writing)
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/v1/models/drug200"), what="an example")
        finally:
            process.terminate()
            _, printed = process.communicate(timeout=PATIENCE)
    assert printed == "espalier: stopped\n"


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "[::1]", "ü" * 63, "aא"])
def test_what_cannot_be_the_name_of_a_host_is_one_clear_line(tmp_path: Path, host: str) -> None:
    for command in ("up", "serve", "ready"):
        environment = environment_for(tmp_path) | {"ESPALIER_AUTH": "keys", "ESPALIER_PORT": str(free_port())}
        refused = run_command([command, "--host", host], env=environment)
        said = f"espalier: ESPALIER_HOST: given {host!r}; legal: a host name or an IP address\n"
        assert (refused.returncode, refused.stderr) == (2, said)


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on files is as good as a full disk, on Linux")
def test_a_disk_without_room_for_temporary_files_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n")
    train = ["train", str(tmp_path / "t.csv"), "--target", "y", "--out-of-core", "--out", str(tmp_path / "m.json")]
    for command in (train, ["worker"]):
        limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "-m", "service.cli", *command]
        environment = environment_for(tmp_path)
        refused = subprocess.run(limited, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == 2, refused.stderr
        assert refused.stderr.startswith("espalier: No usable temporary directory found in ['/tmp'")
        assert refused.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what was read")
def test_asked_to_stop_it_answers_what_it_has_begun_and_lets_nobody_wait(tmp_path: Path) -> None:
    def answer_while_it_stops() -> str:
        with running(tmp_path) as one:
            with begun_upload(one, "a,b\n1,x\n2,y\n") as finish:
                one.process.send_signal(signal.SIGTERM)
                until(lambda: not listens(one), what="the closing of the door")
                answer = finish()
            assert one.process.wait(timeout=PATIENCE) == 0
        return answer

    assert until(answer_while_it_stops, what="an answer").startswith("HTTP/1.1 201 ")


def test_stopping_does_not_wait_for_a_client_that_waits_for_a_job(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        dataset = one.upload("a,y\n1,p\n2,q\n", target="y")
        [worker] = one.children("worker")
        host, port = one.address.removeprefix("http://").split(":")
        with held(worker), socket.create_connection((host, int(port)), timeout=PATIENCE) as waiting:
            job = one.post("/v1/training-jobs", {"model": "m", "dataset": dataset}, status=202)
            waiting.sendall(f"GET /v1/jobs/{job['id']}?wait=20 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            until(lambda: unread(waiting) == 0, what="somebody who reads")
            one.process.send_signal(signal.SIGTERM)
            assert one.process.wait(timeout=PATIENCE) == 0
            assert waiting.recv(12) == b"HTTP/1.1 200"


def test_after_the_parent_was_killed_the_next_one_starts_at_once_on_the_same_port_and_nothing_is_left_over(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as one:
        until(lambda: len(everything_under(one)) >= 4, what="web server, its two workers, worker")
        processes = everything_under(one)
        one.process.kill()
        with running(tmp_path, port=int(one.address.rpartition(":")[2])) as next_one:
            assert next_one.get("/readyz") == {"status": "ready"}
            until(lambda: not any(is_alive(process) for process in processes), what="the end of the children")


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("up", "a file"),
        ("up", "a folder that is a file"),
        ("migrate", "a file"),
        ("migrate", "a folder that is a file"),
        ("serve", "a folder that is a file"),
        ("worker", "a folder that is a file"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_line(tmp_path: Path, command: str, place: str) -> None:
    file = tmp_path / "text.db"
    file.write_text("not a database at all, but long enough to be looked at" * 50)
    database = file if place == "a file" else file / "below.db"
    environment = environment_for(tmp_path) | {"ESPALIER_DATABASE_URL": f"sqlite:///{database}"}
    refused = run_command([command], env=environment | {"ESPALIER_PORT": str(free_port())})
    assert refused.returncode == 2, refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "ESPALIER_DATABASE_URL" in refused.stderr


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root gives a folder away, on Linux")
@pytest.mark.parametrize("command", ["up", "migrate", "serve", "worker"])
def test_a_database_folder_of_another_user_is_one_clear_line_that_says_whose_it_is(
    tmp_path: Path, command: str
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o755)
    os.chown(volume, 10001, 10001)
    environment = environment_for(volume) | {"ESPALIER_PORT": str(free_port())}
    words = [sys.executable, "-c", AS_ANYBODY, sys.executable, "-m", "service.cli", command]
    refused = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2, refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert f"cannot write to {volume}: it belongs to user 10001, and this is user {os.geteuid()}" in refused.stderr


def test_the_examples_are_loaded_once_and_the_few_lines_shown_work_when_pasted(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, "--examples", port=port) as first:
        lines = until(lambda: suggestions(first), what="the suggestions")
        printed = first.output().splitlines()
        assert len(printed) <= 9
        assert first.address in printed[0]
        assert "INFO" not in first.output()
        shown = [pasted(line) for line in lines]
        assert len(lines) == 3
        assert [json.loads(answer)["predictions"][0]["label"] for answer in shown[:2]] == ["No", "drugC"]
        assert "Na_to_K" in shown[2]
        datasets = first.get("/v1/datasets")
    with running(tmp_path, "--examples", port=port) as second:
        until(lambda: suggestions(second), what="the second greeting")
        assert second.get("/v1/datasets") == datasets
        assert {model["name"]: model["newest_version"] for model in second.get("/v1/models")["items"]} == {
            "play-tennis": 1,
            "drug200": 1,
        }
        assert len(second.get("/v1/jobs")["items"]) == 2


def test_serve_alone_is_not_ready_before_the_tables_are_there(tmp_path: Path) -> None:
    port, environment = free_port(), environment_for(tmp_path)
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            until(lambda: answers(f"{address}/livez"), what="the web server")
            assert httpx.get(f"{address}/readyz", timeout=PATIENCE).status_code == 503
            assert run_command(["migrate"], env=environment).returncode == 0
            assert httpx.get(f"{address}/readyz", timeout=PATIENCE).status_code == 200
        finally:
            process.terminate()


def pasted(line: str) -> str:
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout


def suggestions(one: Running) -> list[str]:
    return [line.strip() for line in one.output().partition("Try:")[2].splitlines() if "curl" in line]


def children_of(process: int) -> list[int]:
    """The processes that this one has started and that live."""
    table = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = (tuple(map(int, line.split())) for line in table.splitlines())
    return [child for child, parent in pairs if parent == process]


def everything_under(one: Running) -> list[int]:
    """The children of the process and theirs."""
    table = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = dict(tuple(map(int, line.split())) for line in table.splitlines())  # type: ignore[misc]
    below = {one.process.pid}
    for _ in range(4):
        below |= {child for child, parent in parents.items() if parent in below}
    return sorted(below - {one.process.pid})


@pytest.mark.skipif(not os.access(METRICS_MEMORY, os.W_OK), reason="no such folder here")
def test_what_a_killed_server_left_in_memory_is_removed_by_the_next_and_what_a_living_one_needs_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "other").mkdir()
    with running(tmp_path / "other") as living, running(tmp_path) as killed:
        [web] = killed.children("serve")
        [left] = METRICS_MEMORY.glob(f"{METRICS_PREFIX}{web}-*")
        [kept] = METRICS_MEMORY.glob(f"{METRICS_PREFIX}{living.children('serve')[0]}-*")
        os.killpg(web, signal.SIGKILL)
        until(lambda: not left.exists(), what="the next server's tidying")
        until(lambda: killed.children("serve") not in ([], [web]), what="the next server")
        assert kept.exists()
        assert living.client.get("/metrics").is_success
    assert not kept.exists()
