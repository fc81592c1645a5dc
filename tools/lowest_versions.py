"""Print the lowest version that pyproject.toml allows of each dependency, as lines of a requirements file.

The requirements of the extra ``dev`` are printed unchanged. The extra ``bench`` is left out.
"""

import itertools
import re
import tomllib
from pathlib import Path

BOUND = re.compile(r"([A-Za-z0-9_.\[\]-]+)(?:>=|~=|==)([0-9.]+)")


def main() -> None:
    """Print the lines, one per dependency.

    Raises:
        SystemExit: A dependency, except those of ``dev`` and ``bench``, has no lower bound.
    """
    project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    tools = extras.pop("dev")
    del extras["bench"]  # the peers of the benchmarks are nobody's dependency
    for requirement in itertools.chain(project["dependencies"], *extras.values()):
        match = BOUND.match(requirement)
        if match is None:
            raise SystemExit(f"pyproject.toml: {requirement}: has no lower bound")
        print(f"{match[1]}=={match[2]}")
    print("\n".join(tools))


if __name__ == "__main__":
    main()
