"""The revisions of the tables, as the files of the migrations say: found without the libraries that know databases."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

__all__ = ["TABLE", "head", "lineage"]

TABLE = "alembic_version"
"""Where a database says, in its column ``version_num``, of which revision its tables are."""
REVISION = re.compile(r'^((?:down_)?revision) = (?:"([^"]+)"|None)$', re.MULTILINE)


@cache
def lineage() -> Mapping[str, str | None]:
    """Give each revision and the one before it, as its file says: to load Alembic for it takes 13 MB a process."""
    told = [file.read_text() for file in (files("migrations") / "versions").iterdir() if file.name.endswith(".py")]
    found = [{name: revision or None for name, revision in REVISION.findall(text)} for text in told]
    return {str(one["revision"]): one["down_revision"] for one in found if one.get("revision")}


def head() -> str | None:
    """Give the revision that no other one builds on."""
    known = lineage()
    (last,) = known.keys() - set(known.values())
    return last
