"""What comes in about aliases."""

from service.schemas.shape import ALIAS, LONGEST_PAGE, Digits, Moment, Shape, Whole, between, spelled

__all__ = ["AliasQuery", "AliasRequest", "AliasesQuery"]


class AliasRequest(Shape):
    """Have an alias point at a version."""

    version = Whole(
        required=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "the number of the version"},
    )
    if_current = Whole(
        allow_none=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "only if it points at this version now; null: only if there is no such alias yet"},
    )


class AliasesQuery(Shape):
    """Which part of the list of aliases."""

    limit = Digits(load_default=50, validate=between(1, LONGEST_PAGE), metadata={"description": "how many at most"})
    cursor = spelled(
        ALIAS, "the `next` of the page before", error="must be the `next` of the page before", load_default=None
    )


class AliasQuery(Shape):
    """Which changes of an alias."""

    at = Moment(
        load_default=None, metadata={"description": "only what was in force at this moment (ISO 8601 with zone)"}
    )
    limit = Digits(load_default=50, validate=between(1, LONGEST_PAGE), metadata={"description": "how many at most"})
    cursor = Digits(
        load_default=None, validate=between(1, 2**31 - 1), metadata={"description": "the `next` of the page before"}
    )
