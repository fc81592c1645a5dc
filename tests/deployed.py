"""What Dockerfile and compose.yaml say, as values: some tests hold them against the code, others do as they say."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tests.factories import ROOT

VARIABLE = re.compile(r"\$\{(?P<name>\w+):-(?P<default>[^}]*)\}")
OURS = "espalier:latest"


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a Dockerfile: its word in capitals, and the rest of it on one line."""

    word: str
    text: str


def dockerfile() -> list[list[Step]]:
    """Give the instructions of each stage."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    stages: list[list[Step]] = []
    for word, rest in (line.split(None, 1) for line in lines):
        if word == "FROM":
            stages.append([])
        stages[-1].append(Step(word, rest))
    return stages


def image_environment() -> dict[str, str]:
    """Give the variables that the image sets."""
    given = [step.text for step in dockerfile()[-1] if step.word == "ENV"]
    return dict(pair.split("=", 1) for text in given for pair in shlex.split(text))


def compose(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Give compose.yaml with its ${NAME:-default} put in."""
    known = variables or {}
    text = (ROOT / "compose.yaml").read_text()
    read: dict[str, Any] = yaml.safe_load(VARIABLE.sub(lambda found: known.get(found["name"], found["default"]), text))
    return read


def processes(variables: Mapping[str, str] | None = None) -> list[tuple[str, Sequence[str], dict[str, str]]]:
    """Give (service, command, environment) of each container of ours, as often as it has replicas."""
    return [
        (name, service["command"], image_environment() | service["environment"])
        for name, service in compose(variables)["services"].items()
        if service["image"] == OURS
        for _ in range(service.get("deploy", {}).get("replicas", 1))
    ]
