"""Which version is to answer a request, and by which policy of its model: the one way in for all that predicts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy.orm import Session

from service.database.engine import Sessions, read_session
from service.errors import Conflict, NotFound
from service.repositories.aliases import AliasCache
from service.repositories.catalog import LoadedVersion
from service.usecases import version_resolver
from service.usecases.model_cache import ModelCache
from service.usecases.operating import applied, at_point
from service.usecases.policies import ModelSettings, PolicyCache
from service.usecases.recent import RECENT_SECONDS, Recent

FOUND_SECONDS: Final = RECENT_SECONDS / 2
"""What answers is looked up again so often; together with what it rests on it is a second old at most."""
OTHER_SECONDS: Final = RECENT_SECONDS - FOUND_SECONDS


@dataclass(frozen=True, slots=True)
class ResolvedVersion:
    """What answers a request.

    Attributes:
        version: The version, decoded; its model answers by the operating point.
        alias: That led to it, if one did.
        policy: Of its model; the operating point only where it applies to this version.
    """

    version: LoadedVersion
    alias: str | None
    policy: ModelSettings


def find_answering(
    session: Session,
    models: ModelCache,
    pointers: AliasCache,
    policies: PolicyCache,
    *,
    name: str,
    number: int | None = None,
    alias: str | None = None,
) -> ResolvedVersion:
    """Find what answers: the version of this number, or the one that the alias points at, as `find_pointed_at` does.

    Raises:
        NotFound: There is no such model, version or alias.
        Conflict: The version is archived, or all of them are.
    """
    if number is None:
        version, led = version_resolver.find_pointed_at(session, models, pointers, name, alias)
    else:
        version, led = version_resolver.find_loaded(session, models, name, number), None
    policy = _policy_of(session, policies, version)
    point = applied(version.model, policy.operating_point)
    if point is not None:
        version = replace(version, model=at_point(version.model, point))
    return ResolvedVersion(version, led, replace(policy, operating_point=point))


def _policy_of(session: Session, policies: PolicyCache, version: LoadedVersion) -> ModelSettings:
    try:
        policy = policies.find(session, version.id)
    except NotFound:  # by the names that the caller knows
        raise NotFound("version", f"{version.model_name}/{version.number}") from None
    if policy.archived:
        raise Conflict(f"version {version.number} of model {version.model_name!r} is archived: it answers no more")
    return policy


@dataclass(slots=True)
class VersionResolver:
    """Finds what answers, for any number of threads; a change elsewhere holds within a second, one made here at once.

    Attributes:
        newest: Gives the id of the newest version of a model that answers, None where there is none.
        models: Decoded models by version.
        aliases: Where aliases point.
        policies: What is said of models beside their versions.
        found: What answered a moment ago, by model, number and alias.
    """

    newest: Callable[[str], str | None]
    models: ModelCache = field(default_factory=ModelCache)
    aliases: AliasCache = field(default_factory=lambda: AliasCache(Recent(seconds=OTHER_SECONDS)))
    policies: PolicyCache = field(default_factory=lambda: PolicyCache(Recent(seconds=OTHER_SECONDS)))
    found: Recent[tuple[str, int | None, str | None], ResolvedVersion] = field(
        default_factory=lambda: Recent(seconds=FOUND_SECONDS)
    )

    def find(
        self,
        source: Sessions,
        name: str,
        number: int | None = None,
        alias: str | None = None,
    ) -> ResolvedVersion:
        """Find what answers, as `find_answering` does.

        Args:
            source: Where to look.
            name: Of the model.
            number: Of the version that was asked for, if one was.
            alias: That was asked for, if one was.

        Raises:
            NotFound: There is no such model, version or alias.
            Conflict: The version is archived, or all of them are.
        """
        found = self.found.get((name, number, alias), lambda: self._look_up(source, name, number, alias))
        if number is None and found.alias is None and self.newest(name) != found.version.id:
            # The newest version answers from the moment at which it is there, whatever was found before.
            self.found.forget((name, number, alias))
            return self._look_up(source, name, number, alias)
        return found

    def policy_now(self, source: Sessions, answering: ResolvedVersion) -> ModelSettings:
        """Look at the policy again, for who answers for longer than a moment; its operating point stays what it was.

        Raises:
            NotFound: The version was deleted.
            Conflict: It was archived.
        """
        with read_session(source) as session:
            policy = _policy_of(session, self.policies, answering.version)
        return replace(policy, operating_point=answering.policy.operating_point)

    def forget(self) -> None:
        """Look everything up again next time; what never changes is kept."""
        for recent in (self.aliases.recent, self.policies.recent, self.found):
            recent.forget_all()

    def _look_up(self, source: Sessions, name: str, number: int | None, alias: str | None) -> ResolvedVersion:
        with read_session(source) as session:
            return find_answering(
                session, self.models, self.aliases, self.policies, name=name, number=number, alias=alias
            )
