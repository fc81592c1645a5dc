"""The JSON form of how a model came to be, read back with nothing taken on trust."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from espalier.config.training import Holdout, holdout_from_dict, holdout_to_dict
from espalier.errors import DocumentError, Fault, InvalidInput, within
from espalier.model.model import TrainingRecord

RARE: Final = ("asked", "backfitted", "divided")


def record_document(record: TrainingRecord) -> dict[str, Any]:
    """Give a record as JSON values.

    What does not apply to a model is not said of it: documents that have it say something by it.
    """
    fields = [field.name for field in dataclasses.fields(record)]
    told = [name for name in fields if name not in RARE or getattr(record, name) not in ((), None)]
    return {
        **{name: getattr(record, name) for name in told},
        "train": dict(record.train),
        "held_out": None if record.held_out is None else dict(record.held_out),
        "holdout": None if record.holdout is None else holdout_to_dict(record.holdout),
    }


def read_record(given: Mapping[str, Any]) -> TrainingRecord:
    """Read a record from JSON values.

    Raises:
        DocumentError: What is wrong, where (below /training), and what is legal.
    """
    try:
        holdout: Holdout | None = None if given.get("holdout") is None else holdout_from_dict(given["holdout"])
    except InvalidInput as error:
        raise DocumentError(within("/training/holdout", error.faults)) from None
    faults = _faults_of_types(given)
    if faults:
        raise DocumentError(faults)
    return TrainingRecord(
        n_rows=given["n_rows"],
        n_training_rows=given["n_training_rows"],
        fingerprint=given["fingerprint"],
        holdout=holdout,
        train=given["train"],
        held_out=given.get("held_out"),
        held_out_use=given.get("held_out_use"),
        asked=tuple(given.get("asked", [])),
        backfitted=tuple(given.get("backfitted", [])),
        divided=given.get("divided"),
    )


def _faults_of_types(given: Mapping[str, Any]) -> list[Fault]:
    return [
        Fault(f"/training/{name}", "wrong_type", legal)
        for name, holds, legal in (
            ("n_rows", _is_count(given.get("n_rows")), "must be a whole number"),
            ("n_training_rows", _is_count(given.get("n_training_rows")), "must be a whole number"),
            ("fingerprint", isinstance(given.get("fingerprint"), str), "must be text"),
            ("train", _are_figures(given.get("train")), "must be an object of numbers"),
            (
                "held_out",
                given.get("held_out") is None or _are_figures(given["held_out"]),
                "must be an object of numbers",
            ),
            (
                "held_out_use",
                given.get("held_out_use") in (None, "holdout", "validation"),
                "must be holdout or validation",
            ),
            ("asked", _are_texts(given.get("asked", [])), "must be a list of texts"),
            ("backfitted", _are_texts(given.get("backfitted", [])), "must be a list of texts"),
            ("divided", isinstance(given.get("divided"), bool | None), "must be true or false"),
        )
        if not holds
    ]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _are_figures(value: Any) -> bool:
    return isinstance(value, dict) and all(type(item) in (int, float) for item in value.values())
