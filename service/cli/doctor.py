"""The command that looks at an installation: a line a check, an exit code for machines; it changes nothing."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict

from service.cli.command import Command


def doctor(arguments: Namespace) -> int:
    """Look at everything; 1 if there is a fault, else 0."""
    from service.doctor import Level, examine  # noqa: PLC0415 - `espalier --help` needs no database

    findings = examine()
    has_fault = any(finding.level == Level.FAULT for finding in findings)
    if arguments.json:
        json.dump({"sound": not has_fault, "findings": [asdict(finding) for finding in findings]}, sys.stdout, indent=2)
        print()
    else:
        for finding in findings:
            print(f"{finding.level:<8} {finding.check:<11} {finding.message}")
    return int(has_fault)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


COMMANDS: Mapping[str, Command] = {
    "doctor": Command(
        "look whether this installation is sound, and change nothing: exit code 1 if there is a fault",
        _arguments,
        doctor,
    )
}
