"""Weka's J48 as a black box: if ``weka.jar`` is installed, its command line runs in a separate process."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.tables import Rows

JARS: Final = ("/usr/share/java/weka.jar", "/usr/share/java/weka-stable.jar")
SECONDS: Final = re.compile(r"Time taken to build model: ([0-9.,]+) seconds")
LEAVES: Final = re.compile(r"Number of Leaves\s*:\s*(\d+)")
RIGHT: Final = re.compile(
    r"=== Error on test data ===.*?Correctly Classified Instances\s+\d+\s+([0-9.]+)\s*%", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Answer:
    """Figures that J48 prints: seconds to build the tree, number of its leaves, accuracy on the test file (0 to 1)."""

    seconds: float
    leaves: int
    accuracy: float


def jar() -> str | None:
    """Return the path of Weka, from WEKA_JAR or of Debian's package; None if Java or Weka is not installed."""
    if shutil.which("java") is None:
        return None
    named = [os.environ.get("WEKA_JAR"), *JARS]
    return next((path for path in named if path and Path(path).is_file()), None)


def j48(training: str, test: str) -> Answer:
    """Build one tree with J48's own defaults.

    Raises:
        FileNotFoundError: J48 is not installed.
        ValueError: J48 did not print the expected figures.
    """
    path = jar()
    if path is None:
        raise FileNotFoundError("not installed")
    command = ["java", "-Xmx6g", "-cp", path, "weka.classifiers.trees.J48", "-C", "0.25", "-M", "2"]
    process = subprocess.run(  # noqa: S603 - a fixed command
        [*command, "-t", training, "-T", test], capture_output=True, text=True, check=False
    )
    matches = [pattern.search(process.stdout) for pattern in (SECONDS, LEAVES, RIGHT)]
    if not all(matches):
        raise ValueError(f"J48 ended with exit code {process.returncode}: {process.stderr.strip()[-80:]}")
    seconds, leaves, accuracy = (match[1] for match in matches if match)
    return Answer(float(seconds.replace(",", ".")), int(leaves), float(accuracy) / 100)


def write_arff(rows: Rows, path: Path) -> str:
    """Write rows of numbers (NaN = missing) with their classes as ARFF, and return the path."""
    n_classes = int(rows.target.max()) + 1
    lines = ["@relation rows"]
    lines += [f"@attribute x{column} numeric" for column in range(rows.features.shape[1])]
    lines += [f"@attribute y {{{','.join(f'c{code}' for code in range(n_classes))}}}", "@data"]
    for cells, code in zip(rows.features.tolist(), rows.target.tolist(), strict=True):
        lines.append(",".join("?" if np.isnan(cell) else repr(cell) for cell in cells) + f",c{code}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)
