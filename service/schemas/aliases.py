"""What comes in about aliases."""

from service.schemas.fields import (
    ALIAS,
    MAX_PAGE,
    BaseSchema,
    QueryInteger,
    StrictInteger,
    UtcDateTime,
    between,
    matching,
)


class AliasRequest(BaseSchema):
    """Have an alias point at a version."""

    version = StrictInteger(
        required=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "the number of the version"},
    )
    if_current = StrictInteger(
        allow_none=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "only if it points at this version now; null: only if there is no such alias yet"},
    )


class AliasesQuery(BaseSchema):
    """Which part of the list of aliases."""

    limit = QueryInteger(load_default=50, validate=between(1, MAX_PAGE), metadata={"description": "how many at most"})
    cursor = matching(
        ALIAS, "the `next` of the page before", error="must be the `next` of the page before", load_default=None
    )


class AliasQuery(BaseSchema):
    """Which changes of an alias."""

    at = UtcDateTime(
        load_default=None, metadata={"description": "only what was in force at this moment (ISO 8601 with zone)"}
    )
    limit = QueryInteger(load_default=50, validate=between(1, MAX_PAGE), metadata={"description": "how many at most"})
    cursor = QueryInteger(
        load_default=None, validate=between(1, 2**31 - 1), metadata={"description": "the `next` of the page before"}
    )
