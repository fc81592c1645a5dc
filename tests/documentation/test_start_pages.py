"""The lines of the README and of the first page, run against a real server, in Python and on the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.running import Service
from tests.documentation.pages import blocks, session, text_of
from tests.factories import ROOT

README = text_of("README.md")
FIRST = text_of("start/five_minutes.md")
CONTRIBUTING = text_of("CONTRIBUTING.md")


def printed_by(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("tennis")
def test_the_lines_of_the_readme_print_the_rule_that_it_shows(service: Service) -> None:
    [shown] = blocks(README, "text")

    assert session(blocks(README, "sh")[0], service, ROOT) == shown
    assert printed_by(blocks(README, "python")[0]) == shown.removeprefix("because: ")


def test_the_shell_session_tells_the_story_that_the_first_page_prints(service: Service) -> None:
    shown = session(blocks(FIRST, "sh")[0], service, ROOT)

    assert blocks(FIRST, "text")[0] in shown
    assert shown.startswith("succeeded\n")
    assert shown.endswith("succeeded\n")


def test_the_python_sessions_print_the_tree_of_the_textbooks_and_its_rule() -> None:
    assert [printed_by(program) for program in blocks(FIRST, "python")] == blocks(FIRST, "output")


@pytest.mark.parametrize("page", [README, FIRST], ids=["readme", "five minutes"])
def test_the_estimators_are_in_the_lines_of_python(page: str) -> None:
    assert "TreeClassifier" in "".join(blocks(page, "python"))
    assert "TreeRegressor" in page


def test_the_commands_without_a_server_run_in_their_order(tmp_path: Path) -> None:
    commands = re.findall(r"^    \.venv/bin/espalier (.*)$", FIRST, flags=re.MULTILINE)
    assert len(commands) >= 5

    for command in commands:
        words = command.replace("service/examples/", f"{ROOT}/service/examples/").split()
        done = subprocess.run(
            [sys.executable, "-m", "service.cli", *words],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout


@pytest.mark.parametrize("target", ["run", "test", "check", "check-all", "docs", "bench", "chaos", "lock", "image"])
def test_every_make_target_of_the_pages_is_in_the_makefile(target: str) -> None:
    assert f"`make {target}`" in CONTRIBUTING
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(("given", "option"), [([], ""), (["PORT=9000"], " --port 9000")])
def test_without_a_port_make_run_leaves_it_to_the_settings(given: list[str], option: str) -> None:
    without = {name: value for name, value in os.environ.items() if name != "PORT"}
    shown = subprocess.run(
        ["make", "--no-print-directory", "-n", "run", *given],
        cwd=ROOT,
        env=without,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[-1].split("/")[-1].rstrip() == f"espalier up --examples{option}"


def test_every_folder_of_the_map_is_there() -> None:
    folders = re.findall(r"^\| `(\w+)/` \|", CONTRIBUTING, flags=re.MULTILINE)

    assert len(folders) == 7
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_the_readme_fits_one_screen() -> None:
    assert len(README.splitlines()) <= 50
