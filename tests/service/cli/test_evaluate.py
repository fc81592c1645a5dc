import gzip
import json
import re
from pathlib import Path

import pytest

from service.cli.__main__ import main
from service.cli.evaluate import CANDIDATES, _chance
from tests.factories import ROOT

DRUGS = ROOT / "service" / "examples" / "drug200.csv"


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["evaluate", str(DRUGS), "--target", "Drug", "--folds", "5", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def cells(line: str) -> list[str]:
    """The cells of a line of the table: two spaces or more stand between them."""
    return re.split(r"\s{2,}", line.strip())


def test_the_candidates_are_listed_with_the_best_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    lines = evaluated(capsys, "--candidate", "cart max_depth=1", "--candidate", "cart")

    assert cells(lines[0]) == ["candidate", "accuracy", "± std", "leaves", "p", "pruned", "p", "effect"]
    assert lines[2] == "drug200"
    assert cells(lines[3])[0] == "cart max_depth=1"
    assert cells(lines[4])[0] == "cart"
    assert cells(lines[4])[-1] == "best"
    assert float(cells(lines[3])[-1]) < 0.05
    verdict = " ".join(line.strip() for line in lines[6:])
    assert verdict.startswith("drug200, 200 rows, classification, 5 folds")
    assert "cart has the best accuracy" in verdict
    assert "the difference to cart max_depth=1 is significant" in verdict


def test_no_line_is_wider_than_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    long = "c45 pruning.raising=false pruning.confidence=0.01 min_weight_leaf=10 max_depth=12"

    for candidates in ([], ["--candidate", long, "--candidate", "cart max_depth=1", "--noise", "0.2"]):
        assert [line for line in evaluated(capsys, *candidates) if len(line) > 100] == []


def test_without_candidates_the_published_ways_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(evaluated(capsys)[3:10]).replace(
        "\n  pruning", " pruning"
    )  # a long name continues on a second line
    listed = [cells(line) for line in text.splitlines()]
    names = [line[0] for line in listed]

    assert [name.split()[0] for name in names] == [name.split()[0] for name in CANDIDATES["classification"]]
    # Only what is pruned stands beside its unpruned tree.
    effects = [name == "c45" or ("pruning=null" not in name and "pruning" in name) for name in names]
    assert [line[-1].split()[0] in ("better", "worse", "chance") for line in listed] == effects


def test_numbers_have_candidates_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{x},{3 * x + x % 7 + 0.5}" for x in range(60)]
    (tmp_path / "line.csv").write_text("x,y\n" + "\n".join(rows) + "\n")

    assert main(["evaluate", str(tmp_path / "line.csv"), "--target", "y", "--folds", "2"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert cells(lines[0])[1] == "rmse"
    names = [cells(line)[0] for line in lines[3:9] if not line.startswith(" ")]
    assert [name.split()[0] for name in names] == [name.split()[0] for name in CANDIDATES["regression"]]


def test_one_table_holds_every_file_and_share_of_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.csv").write_text("x,Drug\n" + "1,a\n2,b\n" * 20)
    files = [str(DRUGS), str(tmp_path / "small.csv")]
    noise = ["--noise", "0", "--noise", "0.2"]

    assert main(["evaluate", *files, "--target", "Drug", "--folds", "2", "--candidate", "cart", *noise]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[2:12:3] == ["drug200", "drug200, 20% noise", "small", "small, 20% noise"]
    assert [cells(line)[0] for line in lines[3:13:3]] == ["cart"] * 4
    assert sum(line.startswith("candidate ") for line in lines) == 1


def test_json_gives_a_line_a_share_of_noise(capsys: pytest.CaptureFixture[str]) -> None:
    lines = evaluated(capsys, "--candidate", "cart", "--noise", "0", "--noise", "0.2", "--json")

    documents = [json.loads(line) for line in lines]
    assert [document["label_noise"] for document in documents] == [0.0, 0.2]
    clean, noisy = (document["candidates"][0]["figures"]["accuracy"]["mean"] for document in documents)
    assert noisy < clean


def test_a_declaration_beside_the_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.csv").write_text("x,y\n" + "1,a\n2,b\n" * 20)
    (tmp_path / "small.schema.json").write_text(json.dumps({"target": "y"}))

    assert main(["evaluate", str(tmp_path / "small.csv"), "--folds", "2", "--candidate", "cart"]) == 0

    assert "40 rows, classification, 2 folds" in capsys.readouterr().out


@pytest.mark.parametrize("ending", [".csv.gz", ".CSV.GZ", ".csv.Gz"])
def test_a_declaration_beside_a_compressed_file_is_read_in_any_case_of_the_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    (tmp_path / f"small{ending}").write_bytes(gzip.compress(b"x,y\n" + b"1,a\n2,b\n" * 20))
    (tmp_path / "small.schema.json").write_text(json.dumps({"target": "y"}))

    assert main(["evaluate", str(tmp_path / f"small{ending}"), "--folds", "2", "--candidate", "cart"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "small"
    assert any("small, 40 rows, classification, 2 folds" in line for line in lines)


def test_a_text_in_a_candidate_may_look_like_a_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text('"a seed=7",x,y\n' + "1,2,b\n2,3,c max_depth=1\n" * 20)
    candidate = 'cart class_weight={"c max_depth=1": 2}  cut_points={ "a seed=7": [1.5] } max_depth=3'
    assert main(["evaluate", str(tmp_path / "t.csv"), "--target", "y", "--json", "--candidate", candidate]) == 0
    config = json.loads(capsys.readouterr().out)["candidates"][0]["config"]
    assert (config["max_depth"], config["seed"]) == (3, 0)
    assert (config["class_weight"], config["cut_points"]) == ({"c max_depth=1": 2.0}, {"a seed=7": [1.5]})


def test_json_in_a_candidate_may_have_spaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("x,z z,y\n" + "1,2,a\n2,3,b\n" * 20)
    run = ["evaluate", str(tmp_path / "t.csv"), "--target", "y", "--folds", "2", "--json", "--candidate"]

    found = []
    for candidate in (
        'cart cost_function=nunez attribute_costs={"z z": 9, "x": 1}  pruning={ "method": "reduced_error" }',
        'cart cost_function=nunez attribute_costs={"z\\u0020z":9,"x":1} pruning.method=reduced_error',
    ):
        assert main([*run, candidate]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["candidates"][0]["name"] == candidate
        found.append(document["candidates"][0]["config"])
    assert found[0] == found[1]
    assert found[0]["attribute_costs"] == {"x": 1.0, "z z": 9.0}


def test_one_split_is_a_share_rows_by_their_numbers_or_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = DRUGS.read_text().splitlines(keepends=True)
    (tmp_path / "training.csv").write_text("".join(lines[:151]))
    (tmp_path / "test.csv").write_text("".join([lines[0], *lines[151:]]))
    arguments = ["--target", "Drug", "--candidate", "cart max_depth=2", "--candidate", "cart", "--json"]
    found = []
    for data, holdout in (
        (DRUGS, json.dumps({"rows": list(range(150, 200))})),
        (tmp_path / "training.csv", str(tmp_path / "test.csv")),
        (DRUGS, "0.25"),
        (DRUGS, '{"fraction": 0.25, "seed": 0}'),
    ):
        assert main(["evaluate", str(data), *arguments, "--holdout", holdout]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["folds"] == 1
        found.append([each["figures"]["accuracy"]["mean"] for each in document["candidates"]])

    assert found[0] == found[1]
    assert found[2] == found[3] != found[0]


def test_one_split_tells_its_rows_and_what_is_odd_about_them(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(DRUGS), "--target", "Drug", "--candidate", "cart max_depth=2", "--candidate", "cart"]
    labels = [line.rsplit(",", 1)[1] for line in DRUGS.read_text().splitlines()[1:]]
    rows = [row for row, label in enumerate(labels) if label == labels[0]][:7]
    assert main(["evaluate", *arguments, "--holdout", json.dumps({"rows": rows})]) == 0

    printed = capsys.readouterr().out
    assert "one split with 7 test rows" in printed
    notes = [line for line in printed.splitlines() if line.startswith("test rows: ")]
    assert len(notes) == 1  # true of both
    assert labels[0] in notes[0]


@pytest.mark.parametrize(
    ("p_value", "shown"),
    [(0.0497, "0.0497"), (0.04996, "0.04996"), (0.0503, "0.05"), (0.05, "0.05"), (0.2, "0.2"), (1.0, "1"), (0.0, "0")],
)
def test_a_chance_is_shown_on_its_own_side_of_the_line(p_value: float, shown: str) -> None:
    assert _chance(p_value) == shown


@pytest.mark.parametrize("command", [["evaluate"], ["profile"], ["train", "--out", "never.json"]])
def test_a_command_that_needs_a_target_asks_for_one_of_the_columns(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, str(DRUGS)]) == 2

    printed = capsys.readouterr().err
    assert "drug200.csv: which column is to be predicted? Give --target, one of: Age, Sex, BP," in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--candidate", "catr"], "--candidate 'catr': preset: must be one of"),
        (["--candidate", "cart max_dept=3"], "max_dept: the training configuration has no field"),
        (["--folds", "1"], "folds: must be from 2 to 200"),
        (["--folds", "3", "--holdout", "0.3"], "give either --folds or --holdout"),
        (["--holdout", "1.5"], "fraction: must be a number above 0 and below 1"),
        (["--holdout", '{"rows": [200]}'], "rows: there are 200 rows, counted from 0"),
        (["--holdout", "nothing.csv"], "nothing.csv: there is no such file"),
        (["--holdout", str(DRUGS)], "holdout: is the training data itself"),
        (["--noise", "2"], "label_noise: must be a share"),
    ],
)
def test_what_is_not_legal_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["evaluate", str(DRUGS), "--target", "Drug", *arguments]) == 2

    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
