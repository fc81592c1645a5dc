"""The command ``predict``."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import espalier
from service.cli import Command, files, options
from service.cli.progress import shown_progress


def _arguments(parser: ArgumentParser) -> None:
    options.model_argument(parser)
    parser.add_argument("rows", metavar="ROWS", type=Path, help=f"the rows: {files.FORMATS}")
    parser.add_argument("--explain", choices=["none", "path", "full"], default="path", help="detail (default: path)")
    parser.add_argument(
        "--missing", metavar="S", help="strategy for missing values, such as last_prediction (default: as in training)"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: standard output")


def predict(arguments: Namespace) -> int:
    """Predict each row of a file, and write one line of JSON per row."""
    files.check_out(arguments)
    with files.about(arguments.model):
        model = espalier.with_missing_strategy(files.read_model(arguments.model), arguments.missing)
    with files.about(arguments.rows), shown_progress() as progress:
        rows = espalier.rows_from_file(model.schema, files.existing(arguments.rows), form=files.form_of(arguments.rows))
        answers: list[Any] = (
            list(espalier.predict(model, rows, progress=progress))
            if arguments.explain == "none"
            else list(espalier.explain(model, rows, detail=arguments.explain, progress=progress))
        )
        progress.begin("writing")
        lines = [json.dumps(answer.to_dict(), ensure_ascii=False) + "\n" for answer in progress.each(answers)]
    files.write_or_print(arguments.out, "".join(lines))
    return 0


COMMANDS: Mapping[str, Command] = {
    "predict": Command("predict the rows of a file, each answer with its path", _arguments, predict)
}
