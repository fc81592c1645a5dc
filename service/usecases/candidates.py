"""The candidates of a comparison, read from a request: each a preset with fields changed, as for a training."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import espalier
from espalier import Fault
from service.errors import collect_faults, relocate

MOST_CANDIDATES = 50
LONGEST_NAME = 200


def read_candidates(
    given: Sequence[Mapping[str, Any]], *, schema: espalier.Schema | None, faults: list[Fault]
) -> list[espalier.Candidate]:
    """Read and check every candidate; of those with a fault only the name counts, and the faults are told.

    Args:
        given: ``name, preset, params, pruning`` each, as `schemas.CandidateRequest` gives them.
        schema: What the data set declares, if there is one.
        faults: Those found are added.
    """
    candidates = []
    for place, one in enumerate(given):
        fields = _fields(place, one, faults=faults)
        config = _config(place, one, fields, schema=schema, faults=faults)
        preset = str(one.get("preset"))
        name = one.get("name") or _name(preset, fields)
        candidates.append(espalier.Candidate(name, config or espalier.TrainingConfig()))
    return candidates


def _fields(place: int, one: Mapping[str, Any], *, faults: list[Fault]) -> dict[str, Any]:
    """Put params and pruning together; what has a place of its own is refused among the params."""
    params = dict(one.get("params") or {})
    for name in ("preset", "pruning") if "pruning" in one else ("preset",):
        if name in params:
            del params[name]
            message = f"the {name} is given beside params, not in them"
            faults.append(Fault(f"/candidates/{place}/params/{name}", "unknown_field", message))
    return {**params, "pruning": one["pruning"]} if "pruning" in one else params


def _config(
    place: int,
    one: Mapping[str, Any],
    fields: Mapping[str, Any],
    *,
    schema: espalier.Schema | None,
    faults: list[Fault],
) -> espalier.TrainingConfig | None:
    at = f"/candidates/{place}"
    places = {"/target": "/dataset", "/attributes": "/dataset", "/preset": f"{at}/preset"}
    if "pruning" in one:
        places["/pruning"] = f"{at}/pruning"
    config: espalier.TrainingConfig | None = None
    with collect_faults(faults, relocate(f"{at}/params", places)):
        config = espalier.training_config(one.get("preset", "cart"), **fields)
        if schema is not None and {"preset", "params"} <= one.keys():
            espalier.check_training(schema, config)
    return config


def _name(preset: str, fields: Mapping[str, Any]) -> str:
    """Name a candidate as the command line writes it: ``cart max_depth=3``."""
    words = [preset, *(f"{name}={json.dumps(value, separators=(',', ':'))}" for name, value in fields.items())]
    name = " ".join(words)
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
