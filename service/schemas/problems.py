"""Problem documents, and the state of the process."""

from marshmallow import fields

from service.schemas.fields import BaseSchema, text


class Fault(BaseSchema):
    """One thing that is wrong."""

    pointer = text("JSON pointer into what was sent; a query parameter counts as a member")
    code = text("a stable word for programs")
    message = text("what is wrong and what is legal")


class Problem(BaseSchema):
    """What is wrong with a request (RFC 9457)."""

    type = fields.String(required=True)
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(required=True)
    instance = fields.String(required=True)
    request_id = fields.String(required=True)
    retryable = fields.Boolean(required=True)
    errors = fields.List(fields.Nested(Fault), required=True)


class Start(BaseSchema):
    """The addresses to begin with."""

    service = fields.String(required=True)
    version = fields.String(required=True)
    documentation = fields.String(required=True)
    openapi = fields.String(required=True)
    data_sets = fields.String(required=True)
    models = fields.String(required=True)
    health = fields.String(required=True)


class Status(BaseSchema):
    """Whether the process lives, or can answer."""

    status = fields.String()
