"""Paths that several routes share, and the patterns of names and ids in paths; other names and ids get 404."""

from collections.abc import Mapping

from werkzeug.routing import BaseConverter, IntegerConverter

from service.database import ALIAS as ALIAS_NAME, DECISION_ID, ID, MODEL_NAME

NUMBER = "versions/<int(min=1,max=2147483647):number>"
DATA_SET = "/v1/datasets/<id:data_set_id>"
JOB = "/v1/jobs/<id:job_id>"
MODEL = "/v1/models/<model:name>"
ALIAS = f"{MODEL}/aliases/<alias:alias>"
VERSION = f"{MODEL}/{NUMBER}"
DECISION = "/v1/decisions/<decision:decision_id>"
KEY = "/v1/keys/<id:key_id>"
INFERENCE = "/v2"
INFERENCE_MODEL = f"{INFERENCE}/models/<model:name>"
INFERENCE_VERSION = f"{INFERENCE_MODEL}/{NUMBER}"


class NumberConverter(IntegerConverter):
    """A version number in ASCII digits without leading zeros; `IntegerConverter` accepts ``01`` and other scripts."""

    regex = "[1-9][0-9]*"


def is_inference(path: str) -> bool:
    """Return whether a path belongs to the Open Inference Protocol, whose errors have another shape."""
    return path == INFERENCE or path.startswith(f"{INFERENCE}/")


def _converter(pattern: str) -> type[BaseConverter]:
    return type("Converter", (BaseConverter,), {"regex": pattern})


CONVERTERS: Mapping[str, type[BaseConverter]] = {
    "model": _converter(MODEL_NAME),
    "alias": _converter(ALIAS_NAME),
    "id": _converter(ID),
    "decision": _converter(DECISION_ID),
}
