"""Which version is to answer a request, and by which policy of its model: the one way in for all that predicts."""

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from service import usecases
from service.aliases import AliasCache
from service.catalog import LoadedVersion, ModelCache
from service.errors import Conflict
from service.operating import applied, at_point
from service.policies import Policy, PolicyCache

__all__ = ["Answering", "find_answering"]


@dataclass(frozen=True, slots=True)
class Answering:
    """What answers a request.

    Attributes:
        version: The version, decoded; its model answers by the operating point.
        alias: That led to it, if one did.
        policy: Of its model; the operating point only where it applies to this version.
    """

    version: LoadedVersion
    alias: str | None
    policy: Policy


def find_answering(
    session: Session,
    models: ModelCache,
    pointers: AliasCache,
    policies: PolicyCache,
    *,
    name: str,
    number: int | None = None,
    alias: str | None = None,
) -> Answering:
    """Find what answers: the version of this number, or the one that the alias points at, as `find_pointed_at` does.

    Raises:
        NotFound: There is no such model, version or alias.
        Conflict: The version is archived, or all of them are.
    """
    if number is None:
        version, led = usecases.find_pointed_at(session, models, pointers, name, alias)
    else:
        version, led = usecases.find_loaded(session, models, name, number), None
    policy = policies.find(session, version.id)
    if policy.archived:
        raise Conflict(f"version {version.number} of model {name!r} is archived: it answers no more")
    point = applied(version.model, policy.operating_point)
    if point is not None:
        version = replace(version, model=at_point(version.model, point))
    return Answering(version, led, replace(policy, operating_point=point))
