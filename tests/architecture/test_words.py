"""Packages whose names, docstrings and comments are in plain words use none of the private ones that went."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "espalier"
PLAIN_PACKAGES = ("explanation", "growing", "plotting", "pruning", "rules")
BANNED = frozenset(
    [
        "asked",
        "hand",
        "hands",
        "laid",
        "lane",
        "lanes",
        "lay",
        "lent",
        "noughts",
        "piece",
        "pieces",
        "said",
        "seat",
        "seats",
        "settle",
        "settled",
        "settling",
        "stretch",
        "stretches",
        "told",
        "way",
        "ways",
    ]
)


def words_of(source: str) -> set[str]:
    texts = [token.string for token in tokens_of(source) if token.type in (tokenize.NAME, tokenize.COMMENT)]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, documented))
    texts += [ast.get_docstring(node) or "" for node in nodes]
    return {word.lower() for text in texts for word in re.findall(r"[A-Za-z][a-z]*", text)}


def tokens_of(source: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(source).readline))


@pytest.mark.parametrize("package", PLAIN_PACKAGES)
def test_a_package_in_plain_words_uses_no_banned_one(package: str) -> None:
    found = {path.name: words_of(path.read_text()) & BANNED for path in (CORE / package).rglob("*.py")}
    assert {name: words for name, words in found.items() if words} == {}
