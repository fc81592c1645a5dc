"""The reference pages are complete; `python -m tools.reference_pages` writes those that are generated."""

import re

import pytest

import espalier
from service import settings
from service.cli.__main__ import COMMANDS
from tests.documentation.pages import text_of
from tools import reference_pages

WRITE = "run: python -m tools.reference_pages"


def test_the_settings_page_lists_every_variable_with_its_default_and_legal_values() -> None:
    table = [line for line in text_of("reference/settings.md").splitlines() if line.startswith("| `")]

    assert table == [
        f"| `{variable.name}` | `{variable.default}` | {variable.rule.legal} | {variable.rule.meaning} |"
        for variable in settings.variables()
    ], WRITE


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("configuration.md", r"^#+ .*|^\| `[^|]*"),  # presets, fields and methods
        ("http_api.md", r"^\| `[A-Z]+ [^`]*`"),  # operations
        ("command_line.md", r"^## .*|(?<!\S)--[a-z][\w-]*"),  # commands and options
    ],
)
def test_a_generated_page_lists_everything(page: str, written: str) -> None:
    """Compare the names, not their descriptions, which change more often than a page is written."""
    now, then = reference_pages.PAGES[page](), text_of(f"reference/{page}")

    assert re.findall(written, then, flags=re.MULTILINE) == re.findall(written, now, flags=re.MULTILINE), WRITE


def test_every_command_is_on_the_page() -> None:
    assert re.findall(r"^## espalier (\w+)$", text_of("reference/command_line.md"), flags=re.MULTILINE) == [*COMMANDS]


def test_every_public_name_is_on_the_page_on_python() -> None:
    page = re.findall(r"^::: espalier\.(\w+)$", text_of("reference/python_api.md"), flags=re.MULTILINE)

    assert sorted(page) == sorted(espalier.__all__)


def test_every_preset_score_strategy_and_method_is_on_the_page_on_algorithms() -> None:
    named = set(re.findall(r"`(\w+)`", text_of("explanation/algorithms.md")))
    fields = {field.name: field.choices for field in espalier.field_table(espalier.TrainingConfig)}

    assert {*espalier.PRESETS, *espalier.PRUNERS, *fields["criterion"], *fields["nominal"], *fields["missing"]} <= named
    assert set(espalier.PREDICTION_STRATEGIES) <= named
