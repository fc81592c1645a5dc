"""Turn doctests into code blocks of Markdown: an extension of griffe, which reads the docstrings for the site."""

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*|\n(?P=indent) .*)*", flags=re.MULTILINE)


class FencedDoctests(griffe.Extension):
    """Puts fences around each doctest: its ``>>>`` lines and the output below them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the doctests of one object's docstring."""
        if obj.docstring:
            obj.docstring.value = DOCTEST.sub(self._fenced, obj.docstring.value)

    @staticmethod
    def _fenced(match: re.Match[str]) -> str:
        indent = match["indent"]
        return f"{indent}```pycon\n{match[0]}\n{indent}```"
