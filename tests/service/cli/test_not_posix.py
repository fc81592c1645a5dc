"""The commands without a server run on systems that are not POSIX."""

import subprocess
import sys

from tests.factories import ROOT

WITHOUT_POSIX = """
import mmap, os, signal, sys
for module, names in ((os, ("preadv", "pwritev", "fork", "killpg", "sysconf", "sched_getaffinity", "register_at_fork")),
                      (signal, ("SIGKILL", "SIGHUP", "pthread_sigmask")),
                      (mmap, [name for name in vars(mmap) if name.startswith(("MADV_", "MAP_"))])):
    for name in names:
        vars(module).pop(name, None)
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
from service.cli.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_tree_is_trained_and_answers_without_what_only_posix_has(tmp_path):
    def run(*arguments: object) -> str:
        command = [sys.executable, "-c", WITHOUT_POSIX, *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    data = ROOT / "service" / "examples" / "play_tennis.csv"
    run("train", data, "--target", "PlayTennis", "--out", tmp_path / "tree.json")
    answers = run("predict", tmp_path / "tree.json", data, "--explain", "none")

    assert len(answers.splitlines()) == 14
