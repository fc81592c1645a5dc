from service import settings
from tests.factories import ROOT


def test_the_settings_page_lists_every_variable_with_its_default_and_legal_values() -> None:
    lines = (ROOT / "docs" / "settings.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| `")]

    assert table == [
        f"| `{variable.name}` | `{variable.default}` | {variable.legal} | {variable.meaning} |"
        for variable in settings.variables()
    ]
