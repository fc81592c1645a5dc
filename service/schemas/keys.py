"""API keys."""

from marshmallow import fields

from service.database import MODEL_NAME
from service.database.tables import Scope
from service.schemas.fields import BaseSchema, UtcDateTime, list_of, one_of, page_of, printable, text


class Key(BaseSchema):
    """An API key, without its secret."""

    id = text("its id, which is a part of the key")
    name = text("whose it is")
    scopes = fields.List(fields.String(metadata={"enum": [scope.value for scope in Scope]}))
    models = list_of(fields.String(), "that it reaches; null: all", allow_none=True)
    created = fields.AwareDateTime()
    expires = fields.AwareDateTime(allow_none=True)
    revoked = fields.AwareDateTime(allow_none=True)


class NewKey(Key):
    """An API key with its secret, which is shown this once."""

    token = text("the key itself: send it as `Authorization: Bearer …`")


KeyPage = page_of(Key)


class KeyRequest(BaseSchema):
    """Make a key."""

    name = printable("whose it is", longest=200, required=True)
    scopes = fields.List(
        text("a scope", validate=one_of([scope.value for scope in Scope])),
        required=True,
        metadata={
            "description": "predict: ask models; read: look at data sets, jobs, models; train: upload, train, prune, "
            "delete; audit: look at decisions; admin: all of it, and keys",
            "minItems": 1,
        },
    )
    models = fields.List(
        fields.String(metadata={"description": "name of a model", "pattern": f"^{MODEL_NAME}$"}),
        load_default=None,
        allow_none=True,
        metadata={"description": "the models that it reaches; null: all. Data sets are not limited", "minItems": 1},
    )
    expires = UtcDateTime(
        load_default=None, allow_none=True, metadata={"description": "when it stops working; null: never"}
    )
