"""The README's lines, run as they stand: the shell session against a real server, the Python session, the commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.running import Service
from tests.documentation.pages import blocks, session, text_of
from tests.factories import ROOT

README = text_of("README.md")


def test_the_shell_session_tells_the_story_that_the_readme_prints(service: Service) -> None:
    shown = session(blocks(README, "sh")[0], service, ROOT)

    assert blocks(README, "text")[0] in shown
    assert shown.startswith("succeeded\n")
    assert shown.endswith("succeeded\n")


def test_the_python_session_runs_and_prints_a_rule() -> None:
    done = subprocess.run(
        [sys.executable, "-c", blocks(README, "python")[0]], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    # The tree of the play-tennis data in the textbooks: under a sunny outlook a high humidity says no.
    assert done.stdout.endswith("if Outlook is Sunny and Humidity is High then No\n")


def test_the_commands_without_a_server_run_in_their_order(tmp_path: Path) -> None:
    commands = re.findall(r"^    \.venv/bin/espalier (.*)$", README, flags=re.MULTILINE)
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


@pytest.mark.parametrize("target", ["run", "test", "check", "check-all", "bench", "lock", "image"])
def test_every_make_target_of_the_readme_is_in_the_makefile(target: str) -> None:
    assert f"`make {target}`" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_every_folder_of_the_map_is_there() -> None:
    for folder in re.findall(r"^\| `(\w+)/` \|", README, flags=re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
