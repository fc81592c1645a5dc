"""The environment with the lowest versions, of `make check-all`: each library has one there that we allow."""

import subprocess
import sys
import tomllib

from packaging.requirements import Requirement

from tests.factories import ROOT


def test_every_library_has_a_lowest_version_that_is_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["service"], *extras["postgres"], *extras["traces"]]

    printed = subprocess.run(
        [sys.executable, str(ROOT / "tools/lowest_versions.py")], capture_output=True, text=True, check=True
    )
    lowest = {one.name: one for one in map(Requirement, printed.stdout.splitlines())}

    for requirement in map(Requirement, wanted):
        [pinned] = lowest[requirement.name].specifier
        assert pinned.operator == "=="
        assert requirement.specifier.contains(pinned.version), requirement
