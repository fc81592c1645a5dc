"""Problem documents, the start page and the state of the process."""

from service.schemas import fields


class Fault(fields.BaseSchema):
    pointer = fields.Text("JSON pointer into the request; a parameter of the query is /NAME")
    code = fields.Text("a stable identifier for programs")
    message = fields.Text("what is wrong and what is legal")


class Problem(fields.BaseSchema):
    """A problem document (RFC 9457)."""

    type = fields.Text(required=True)
    title = fields.Text(required=True)
    status = fields.Integer(required=True)
    detail = fields.Text(required=True)
    instance = fields.Text(required=True)
    request_id = fields.Text(required=True)
    retryable = fields.Boolean(required=True)
    errors = fields.ListOf(fields.Nested(Fault), required=True)


START_MEMBERS = ("service", "version", "pages", "documentation", "openapi", "data_sets", "models", "health")
Start = fields.BaseSchema.from_dict({name: fields.Text(required=True) for name in START_MEMBERS}, name="Start")


class Status(fields.BaseSchema):
    status = fields.Text()
