"""Packages whose names, docstrings and comments are in plain words use none of the private ones that went."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAIN_PACKAGES = (
    *sorted(
        f"{package}/{path.name}"
        for package in ("espalier", "service")
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").exists()
    ),
    "benchmarks",
    "tools",
)
PUBLIC = {
    "schemas/predictions.py": {"settled"},
    "documents/parts.py": {"asked"},
    "model/model.py": {"asked"},
    "training/train.py": {"asked"},
}
"""Names of the OpenAPI document and of the document of a model, which clients know."""
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
    found = {
        f"{path.parent.name}/{path.name}": words_of(path.read_text()) & BANNED
        for path in (ROOT / package).rglob("*.py")
    }
    assert {name: words for name, words in found.items() if words - PUBLIC.get(name, set())} == {}
