"""What every job's process begins with is loaded before there is a job."""

import os
import subprocess
import sys

import pytest

LOOKED_AT = """
import sys
from service.worker import preloaded
from service.database import tables
print(tables.DataSet.__mapper__.configured, sorted({"sqlite3", "psycopg", "numba"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("url", "loaded"),
    [
        ("sqlite:///never-opened.db", "['numba', 'sqlite3']"),
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", "['numba', 'psycopg', 'sqlite3']"),
    ],
)
def test_the_tables_and_the_driver_of_the_database_are_there(url: str, loaded: str) -> None:
    surroundings = os.environ | {"ESPALIER_DATABASE_URL": url, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", LOOKED_AT], env=surroundings, capture_output=True, text=True, check=True
    )

    assert done.stdout == f"True {loaded}\n"
    assert done.stderr == ""
