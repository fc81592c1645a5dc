"""Exported files, run by what they are written for: (label or value, leaf, shares) of each row."""

import json
import math
import subprocess
from collections.abc import Sequence
from typing import Any

from espalier import Feature, Model
from espalier.data.labels import label_text

Answer = tuple[Any, int, tuple[float, ...]]

C_MAIN = """
#include <stdio.h>
static const espalier_value rows[][N_ATTRIBUTES] = {
%s
};
int main(void) {
    for (size_t at = 0; at < sizeof rows / sizeof rows[0]; at++) {
        espalier_answer answer;
        espalier_predict(rows[at], &answer);
        printf("%%d %%d %%.17g", answer.leaf, answer.code, answer.value);
        for (int each = 0; each < N_CLASSES; each++) printf(" %%.17g", answer.probability[each]);
        printf("\\n");
    }
    return 0;
}
"""
NODE_MAIN = """
import {{ predict }} from {module};
import {{ readFileSync }} from "node:fs";
const rows = JSON.parse(readFileSync({rows}, "utf8"));
process.stdout.write(JSON.stringify(rows.map((row) => predict(row))));
"""


def as_answer(model: Model, given: dict[str, Any]) -> Answer:
    if not model.schema.classes:
        return given["value"], given["leaf"], ()
    assert list(given["probability"]) == sorted(given["probability"], key=list(given["probability"]).index)
    shares = tuple(given["probability"][label_text(label)] for label in model.schema.classes)
    return given["label"], given["leaf"], shares


def python_answers(text: str, model: Model, rows: list[dict[str, Any]], folder: Any) -> list[Answer]:
    names: dict[str, Any] = {}
    exec(compile(text, "exported.py", "exec"), names)  # noqa: S102 - the test runs what it exports
    return [as_answer(model, names["predict"](row)) for row in rows]


def javascript_answers(text: str, model: Model, rows: list[dict[str, Any]], folder: Any) -> list[Answer]:
    module, data, main = folder / "model.mjs", folder / "rows.json", folder / "main.mjs"
    module.write_text(text)
    data.write_text(json.dumps(rows))
    main.write_text(NODE_MAIN.format(module=json.dumps(str(module)), rows=json.dumps(str(data))))
    done = subprocess.run(["node", str(main)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [as_answer(model, each) for each in json.loads(done.stdout)]


def c_answers(
    text: str, model: Model, rows: list[dict[str, Any]], folder: Any, options: Sequence[str] = ("-std=c99", "-pedantic")
) -> list[Answer]:
    source, program = folder / "model.c", folder / "model"
    lines = [
        "{" + ", ".join(_c_cell(each, row.get(each.name)) for each in model.schema.attributes) + "}" for row in rows
    ]
    source.write_text(text + C_MAIN % ",\n".join(lines))
    command = ["gcc", *options, "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    found = []
    for line in subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines():
        leaf, code, value, *shares = line.split()
        answer = model.schema.classes[int(code)] if model.schema.classes else float(value)
        found.append((answer, int(leaf), tuple(map(float, shares))))
    return found


def _c_cell(feature: Feature, cell: Any) -> str:
    if feature.coded:
        return "{0, " + ("NULL" if cell is None else _c_text(label_text(cell))) + "}"
    return "{NAN, NULL}" if cell is None else "{" + repr(float(cell)) + ", NULL}"


def _c_text(text: str) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


def different(found: list[Answer], expected: list[Answer]) -> list[tuple[int, Answer, Answer]]:
    """Return the rows whose label or leaf differs, or whose numbers differ by more than 1e-12."""
    assert len(found) == len(expected)
    return [
        (row, one, other)
        for row, (one, other) in enumerate(zip(found, expected, strict=True))
        if one[1] != other[1] or not same(one[0], other[0]) or not all(map(same, one[2], other[2]))
    ]


def same(one: Any, other: Any) -> bool:
    if isinstance(other, float) and isinstance(one, int | float) and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return type(one) is type(other) and one == other
