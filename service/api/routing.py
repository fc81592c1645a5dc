"""What names and ids look like in a path; anything else is not found before a query is made."""

from collections.abc import Mapping

from werkzeug.routing import BaseConverter, IntegerConverter

from service.database import ALIAS as ALIAS_NAME, DECISION_ID, ID, MODEL_NAME

NUMBER = "versions/<int(min=1,max=2147483647):number>"
MODEL = "/v1/models/<model:name>"
ALIAS = f"{MODEL}/aliases/<alias:alias>"
VERSION = f"{MODEL}/{NUMBER}"
INFERENCE = "/v2"
INFERENCE_MODEL = f"{INFERENCE}/models/<model:name>"
INFERENCE_VERSION = f"{INFERENCE_MODEL}/{NUMBER}"


class NumberConverter(IntegerConverter):
    """The number of a version, in digits 0 to 9 and spelt one way: werkzeug's own takes ``01``, and all scripts."""

    regex = "[1-9][0-9]*"


class ModelNameConverter(BaseConverter):
    """A model's name."""

    regex = MODEL_NAME


class AliasConverter(BaseConverter):
    """An alias of a model."""

    regex = ALIAS_NAME


class IdConverter(BaseConverter):
    """The id of a data set or a job: a UUID in lower case."""

    regex = ID


class DecisionIdConverter(BaseConverter):
    """The id of a decision: a UUID, and the row's number in a request of many rows."""

    regex = DECISION_ID


CONVERTERS: Mapping[str, type[BaseConverter]] = {
    "model": ModelNameConverter,
    "alias": AliasConverter,
    "id": IdConverter,
    "decision": DecisionIdConverter,
}
