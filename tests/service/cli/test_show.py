"""The command ``show``: every form of a model file, whole and in part."""

import json
from pathlib import Path

import pytest

import espalier
from service.cli.__main__ import main
from tests.service.served import TENNIS

ROW = '{"Outlook": "Sunny", "Humidity": "High"}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    (tmp_path / "tennis.json").write_bytes(espalier.to_json(model))
    return tmp_path / "tennis.json"


def show(file: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["show", str(file), *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "svg"])
def test_each_form_is_what_the_core_gives(file: Path, capsys, form: str) -> None:
    model, render = espalier.from_json(file.read_bytes()), getattr(espalier, f"to_{form}")
    assert show(file, capsys, "--format", form) == render(model)
    assert show(file, capsys, "--format", form, "--depth", "1") == render(model, depth=1)
    assert show(file, capsys, "--format", form, "--node", "5") == render(model, node=5)
    assert show(file, capsys, "--format", form, "--row", ROW) == render(model, path=json.loads(ROW))


def test_json_is_the_document_or_the_columns_of_a_part(file: Path, capsys) -> None:
    model = espalier.from_json(file.read_bytes())
    assert json.loads(show(file, capsys, "--format", "json")) == espalier.to_document(model)
    assert json.loads(show(file, capsys, "--format", "json", "--depth", "1"))["folded"] == [0, 0, 2, 2]


def test_a_picture_is_written_to_a_file(file: Path, capsys) -> None:
    out = file.with_name("tennis.svg")
    assert show(file, capsys, "--format", "svg", "--out", str(out)) == f"written   {out}\n"
    assert out.read_text(encoding="utf-8") == espalier.to_svg(espalier.from_json(file.read_bytes()))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--node", "8"], "node: must be the number of a node: a whole number from 0 to 7"),
        (["--depth", "-1"], "depth: must be a whole number of at least 0"),
        (["--row", "Sunny"], "--row: must be a JSON object"),
        (["--row", "null"], "--row: must be a JSON object"),
        (["--row", '{"Outlook": NaN}'], "--row: must be a JSON object"),
        (["--row", "[" * 100_000], "--row: must be a JSON object"),
        (["--row", '{"Outlook": 3}'], "0.Outlook: must be text"),
        (["--row", ROW, "--format", "json"], "--row: the JSON form has no path of a row"),
        (["--out", "nowhere/x.svg"], "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_shown_is_one_line_that_says_why(file: Path, capsys, arguments: list[str], said: str) -> None:
    assert main(["show", str(file), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1
