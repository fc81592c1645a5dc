"""What the image promises, seen at a container that runs: keys, no root, no writing about, every kernel there.

The files of the container are seen through /proc, so this runs on the container's own machine, as root.
"""

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.running import Service, is_alive, until

COMMAND = b"/opt/espalier/bin/python3\0/opt/espalier/bin/espalier\0up\0"
USER = 10001
ITS_OWN = ("data", "tmp")  # where it may write
NOT_FILES = ("dev", "proc", "sys")
COMPILERS = frozenset({"as", "c++", "cc", "clang", "g++", "gcc", "ld", "make"})
INSTALLERS = frozenset({"pip", "pip3", "pytest"})
COLOURS = ("red", "green", "blue")
MIXED = "size,colour,late,y\n" + "".join(
    f"{n * 37 % 101 / 7 if n % 9 else ''},{COLOURS[n % 3]},{n % 2},{n * 7 % 5 > 2}\n" for n in range(300)
)
N_CONNECTIONS, N_QUESTIONS = 64, 100
MOST_MEMORY = 512_000_000
NUMBERS = "size,colour,y\n" + "".join(f"{n * 37 % 101},{COLOURS[n % 3]},{n * 7 % 11}.5\n" for n in range(300))
PRUNINGS = (
    {"method": "reduced_error"},
    {"method": "pessimistic", "params": {"quantile": "exact"}},
    {"method": "cost_complexity", "params": {"alpha": 0.01}},
    {"method": "rules"},
)


@pytest.fixture(scope="module")
def process(image: Service) -> int:
    """The id, on this machine, of the container's first process."""
    [found] = [place for place in processes() if words_of(place) == COMMAND]
    return int(found.name)


@pytest.fixture(scope="module")
def root(process: int) -> Path:
    """The files of the container."""
    return Path(f"/proc/{process}/root")


def test_without_a_key_nothing_is_told(image: Service) -> None:
    with image.client_with(None) as stranger:
        assert stranger.get("/livez").status_code == 200
        refused = stranger.get("/v1/models")
    assert (refused.status_code, refused.headers["Content-Type"]) == (401, "application/problem+json")


def test_a_key_without_the_scope_is_refused(image: Service) -> None:
    made = image.post("/v1/keys", {"name": "asks only", "scopes": ["predict"]}, status=201)
    with image.client_with(made["token"]) as asking:
        upload = asking.post("/v1/datasets", content=MIXED, headers={"Content-Type": "text/csv"})
        assert (upload.status_code, "train" in upload.json()["detail"]) == (403, True)


def test_no_process_is_root(process: int, root: Path) -> None:
    inside = [one for one in running_in(root) if is_alive(one)]
    assert len(inside) >= 5  # up, the web server, its two workers, the worker
    for one in inside:
        status = Path(f"/proc/{one}/status").read_text()
        assert f"Uid:\t{USER}\t{USER}\t{USER}\t{USER}\n" in status


def test_what_the_image_is_made_of_cannot_be_changed_by_its_user(root: Path) -> None:
    for path in files_of(root):
        found = path.lstat()
        assert found.st_uid != USER, path
        is_temporary = found.st_mode & stat.S_ISVTX  # such as /var/tmp
        assert is_temporary or stat.S_ISLNK(found.st_mode) or not found.st_mode & stat.S_IWOTH, path


def test_there_is_no_compiler_no_installer_and_no_test_in_it(root: Path) -> None:
    programs = {path.name for place in ("usr/bin", "usr/local/bin") for path in (root / place).iterdir()}
    assert programs & COMPILERS == set()
    ours = {path.name for path in (root / "opt/espalier/bin").iterdir()}
    assert ({"espalier", "python3"} <= ours, ours & INSTALLERS) == (True, set())
    packages = {path.name for path in root.glob("opt/espalier/lib/python3*/site-packages/*")}
    assert {"espalier", "service", "migrations"} <= packages
    assert packages & {"benchmarks", "pip", "pytest", "tools"} == set()
    assert [path for path in files_of(root / "opt") if path.name == "tests"] == []


def test_its_health_check_says_that_it_is_ready(image: Service, process: int) -> None:
    asked = run_inside(process, "ready")
    assert (asked.returncode, asked.stderr) == (0, "")
    elsewhere = run_inside(process, "ready", ESPALIER_PORT="1")
    assert (elsewhere.returncode, "not ready" in elsewhere.stderr) == (1, True)


@pytest.mark.parametrize("command", ["up", "migrate", "serve", "worker"])
def test_a_volume_that_is_another_users_is_one_clear_line(process: int, command: str) -> None:
    refused = run_inside(process, command, ESPALIER_DATABASE_URL="sqlite:////media/espalier.db")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert f"/media: it belongs to user 0, and this is user {USER}" in refused.stderr


def test_every_preset_and_every_pruning_has_its_kernels(image: Service) -> None:
    mixed, numbers = image.upload(MIXED, target="y"), image.upload(NUMBERS, target="y", task="regression")
    holdout = {"fraction": 0.3, "seed": 1}
    for preset in ("cart", "c45", "j48", "reptree"):
        image.train(f"mixed-{preset}", mixed, preset=preset, holdout=holdout)
    for preset in ("cart", "reptree", "m5"):
        image.train(f"numbers-{preset}", numbers, preset=preset, holdout=holdout)
    image.train("rare", mixed, preset="cart", params={"missing": "surrogate", "max_leaf_nodes": 5}, holdout=holdout)
    for pruning in PRUNINGS:
        job = image.post("/v1/pruning-jobs", {"model": "mixed-c45", "version": 1, **pruning}, status=202)
        assert image.finished(job)["state"] == "succeeded", pruning


def test_under_load_over_64_connections_all_its_processes_take_less_than_512_mb(image: Service, root: Path) -> None:
    image.train("asked", image.upload(MIXED, target="y"))
    with ThreadPoolExecutor(N_CONNECTIONS) as pool:
        loads = [pool.submit(ask, image, "asked") for _ in range(N_CONNECTIONS)]
        most = 0
        while not all(load.done() for load in loads):
            most = max(most, sum(map(memory_of, running_in(root))))
            wait(loads, timeout=0.2)

    assert [load.result() for load in loads] == [N_QUESTIONS] * N_CONNECTIONS
    assert 0 < most < MOST_MEMORY, f"{most / 1e6:.0f} MB"


def test_nothing_was_written_but_in_the_volume_and_the_temporary_folder(root: Path) -> None:
    # What the image is made of is another user's and closed to this one (seen above), so what it wrote is its own.
    # Moments would not tell: a machine's clock may be set between the making of a container and its start.
    assert [path for path in files_of(root) if path.lstat().st_uid == USER] == []
    assert (root / "data" / "espalier.db").stat().st_uid == USER


def test_asked_to_stop_it_ends_within_the_ten_seconds_that_are_given(process: int, root: Path) -> None:
    inside = running_in(root)
    os.kill(process, signal.SIGTERM)
    until(lambda: not any(map(is_alive, inside)), seconds=10, what="the end of the container")


def processes() -> Iterator[Path]:
    return Path("/proc").glob("[0-9]*")


def words_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def running_in(root: Path) -> list[int]:
    """Give the processes of the container, as far as they are Python."""
    began = (b"/opt/espalier/bin/python3\0", b"espalier")
    return [int(place.name) for place in processes() if words_of(place).startswith(began) and same_files(place, root)]


def same_files(process: Path, root: Path) -> bool:
    try:
        return (process / "root").stat().st_ino == root.stat().st_ino
    except OSError:  # it has ended
        return False


def memory_of(process: int) -> int:
    """Give the bytes that a process holds, with its part of what it shares (PSS); none once it has ended."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(rollup.partition("\nPss:")[2].split()[0]) * 1024


def ask(image: Service, model: str) -> int:
    """Ask again and again over one connection; give how many answers were right."""
    address = urlsplit(image.address)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {image.key}"}
    answered = 0
    with closing(connection):
        for number in range(N_QUESTIONS):
            row = {"size": number, "colour": COLOURS[number % 3], "late": number % 2}
            connection.request("POST", f"/v1/models/{model}/predict", json.dumps({"rows": [row]}), headers)
            answer = connection.getresponse()
            answered += "decision_id" in json.loads(answer.read())["predictions"][0]
    return answered


def files_of(root: Path) -> Iterator[Path]:
    """Give what is in the image, but for what the machine puts there and what is the user's own."""
    for folder, folders, names in os.walk(root):
        current_service = Path(folder)
        if current_service == root:
            folders[:] = [name for name in folders if name not in {*ITS_OWN, *NOT_FILES}]
        yield from (current_service / name for name in (*names, *folders))


def run_inside(process: int, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `espalier` as the container's user, on its files, with its environment."""
    given = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    own = dict(pair.split("=", 1) for pair in given if "=" in pair)
    command = ["chroot", f"--userspec={USER}:{USER}", f"/proc/{process}/root", "espalier", *words]
    return subprocess.run(command, env=own | environment, capture_output=True, text=True, timeout=60, check=False)
