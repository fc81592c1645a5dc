"""What is said of a model beside its versions, and how it bears on their answers; changes are seen within a second.

A version never changes; what its model says of it may: which inputs are not kept, and whether it still answers.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.database.tables import ModelName, Version
from service.errors import NotFound
from service.usecases.operating import Said
from service.usecases.recent import Recent


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a version answers now.

    Attributes:
        mask: Attributes whose values are not logged; the version need not have all of them.
        archived: Whether the version answers no more.
        operating_point: From which probability on a label is given; None: the most probable one is.
    """

    mask: frozenset[str] = frozenset()
    archived: bool = False
    operating_point: Said | None = None

    def masked(self, attributes: Collection[str]) -> list[str] | None:
        """Give those of the attributes that are not logged, in the order of their names; None: all are."""
        return sorted(self.mask.intersection(attributes)) or None


PLAIN = ModelSettings()
"""Nothing is said: every input is logged."""


@dataclass(slots=True)
class PolicyCache:
    """Policies by version id; a change elsewhere is seen within a second."""

    recent: Recent[str, ModelSettings] = field(default_factory=Recent)

    def find(self, session: Session, version_id: str) -> ModelSettings:
        """Give the policy of a version.

        Raises:
            NotFound: There is no such version.
        """
        return self.recent.get(version_id, lambda: policy_of(session, version_id))


def policy_of(session: Session, version_id: str) -> ModelSettings:
    """Look up the policy of a version.

    Raises:
        NotFound: There is no such version.
    """
    query = select(ModelName.mask, ModelName.operating_point, Version.archived).join(
        Version, Version.model_id == ModelName.id
    )
    found = session.execute(query.where(Version.id == version_id)).first()
    if found is None:
        raise NotFound("version", version_id)
    return ModelSettings(
        mask=frozenset(found.mask or ()), archived=found.archived is not None, operating_point=found.operating_point
    )
