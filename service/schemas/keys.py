"""API keys."""

from service.database import MODEL_NAME
from service.database.tables import Scope
from service.schemas import fields

SCOPES = [scope.value for scope in Scope]


class Key(fields.BaseSchema):
    id = fields.Text("id of the key, which is a part of its token")
    name = fields.Text("name of the key")
    scopes = fields.ListOf(fields.Text(schema={"enum": SCOPES}))
    models = fields.ListOf(fields.Text(), "models that the key is limited to; null: all models", allow_none=True)
    created = fields.DateTime()
    expires = fields.DateTime(allow_none=True)
    revoked = fields.DateTime(allow_none=True)


class NewKey(Key):
    """An API key with its secret, which is shown only once."""

    token = fields.Text("the key itself: send it as `Authorization: Bearer …`")


class KeyRequest(fields.BaseSchema):
    name = fields.printable("name of the key", longest=200, required=True)
    scopes = fields.ListOf(
        fields.word(SCOPES, "a scope"),
        "predict: predict with models; read: read data sets, jobs and models; train: upload, train, prune and delete; "
        "audit: read decisions; admin: everything, including keys",
        required=True,
        schema={"minItems": 1},
    )
    models = fields.ListOf(
        fields.Text("name of a model", schema={"pattern": f"^{MODEL_NAME}$"}),
        "models that the key is limited to; null: all. A limited key cannot change or delete data sets",
        load_default=None,
        allow_none=True,
        schema={"minItems": 1},
    )
    expires = fields.utc_time("time at which the key stops working; null: never")
