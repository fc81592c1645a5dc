"""Import, archive and delete models and versions, and change the settings of a model.

The document of a version never changes. An archived version no longer answers, but its decisions can be explained.
A version cannot be deleted alone if a decision, an unfinished job or a pruned version needs it, or an alias named it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.clock import utc_now
from service.database.tables import AliasEvent, DecisionRecord, Job, ModelName, Version
from service.errors import Conflict, ValidationFailed, check_size
from service.repositories import aliases, job_queue
from service.repositories.model_cache import LoadedVersion, ModelCache, n_nodes_of
from service.repositories.models import NewVersion, find_model, find_version
from service.settings import Settings
from service.usecases.datasets import check_columns

MAX_DESCRIPTION_CHARS = 10_000
MAX_TAG_CHARS = 64
MAX_TAGS = 50
MAX_VERSIONS_READ = 50  # newest first, to check the attributes of a mask and the label of an operating point
MAX_RULES = 10_000
"""Writing the condition of a class with this many leaves takes seconds and blocks the process's other requests."""
MAX_LISTED_CATEGORIES = 2_000_000  # in all tests of a tree together; each rule lists the categories of its conditions
LINE_CHARS = "\n\t"  # the only control characters of a description


def new_version(model: espalier.Model, *, name: str, settings: Settings) -> NewVersion:
    """Return an imported model as a version to be stored; raise `TooLarge` if it is larger than the settings allow."""
    check_columns(model.schema, settings)
    counted = "rules and conditions" if isinstance(model.body, espalier.RuleList) else "nodes"
    check_size(counted, given=n_nodes_of(model), limit=settings.max_nodes)
    return NewVersion.of(model, name=name)


def check_rules(model: espalier.Model, *, exported: bool = False) -> None:
    """Raise `NotApplicable` if the rules of a model take too long to write, or list too many categories."""
    if isinstance(model.body, espalier.RuleList):
        tests = [each for rule in model.body.rules for each in rule.conditions if each.categories is not None]
        # An exported condition also names the categories of its attribute that it does not list.
        n_listed = sum(len(each.attribute.categories if exported else each.categories or ()) for each in tests)
        n_rules, what = model.body.n_rules, "rules"
    else:
        n_rules, n_listed, what = model.body.n_leaves, len(model.tree.code_branch), "leaves with one rule each"
    if n_rules > MAX_RULES:
        raise espalier.NotApplicable(
            f"this version has {n_rules} {what}; at most {MAX_RULES} are returned: prune it, or get its document"
        )
    if n_listed > MAX_LISTED_CATEGORIES:
        raise espalier.NotApplicable(
            f"the tests of this version list {n_listed} categories; rules with at most {MAX_LISTED_CATEGORIES} are "
            "returned: prune the version, or get its document"
        )


def change_settings(session: Session, models: ModelCache, name: str, changes: Mapping[str, Any]) -> ModelName:
    """Change the settings of a model; an empty value removes a setting. Raises `ValidationFailed` with every fault."""
    row = find_model(session, name, lock=True)
    faults = [
        *_text_faults(changes.get("description") or "", changes.get("tags") or ()),
        *_point_faults(session, models, row, changes.get("operating_point")),
        *_mask_faults(session, models, row, changes.get("mask") or ()),
    ]
    ValidationFailed.raise_for(faults)
    for field, value in changes.items():
        setattr(row, field, value or None)
    session.flush()
    return row


def archive_version(session: Session, name: str, number: int) -> Version:
    """Archive a version unless it is archived already; raise `Conflict` if an alias points at it."""
    model = find_model(session, name, lock=True)
    version = find_version(session, name, number)
    for alias in aliases.pointing_at(session, model.id, version.id):
        raise Conflict(f"alias {alias!r} points at version {number} of model {name!r}: point it at another one first")
    if version.archived is None:
        version.archived = utc_now()
        session.flush()
    return version


def delete_version(session: Session, name: str, number: int) -> None:
    """Delete a version; its number is not used again. Raises `Conflict` if something refers to it (see the module)."""
    model = find_model(session, name, lock=True)
    version = find_version(session, name, number)
    for reference in _references(session, model, version):
        raise Conflict(f"version {number} of model {name!r} cannot be deleted: {reference}")
    session.execute(delete(Version).where(Version.id == version.id))


def delete_model(session: Session, name: str) -> None:
    """Delete a model with its versions and aliases; raise `Conflict` if it has decisions or an unfinished job."""
    model = find_model(session, name, lock=True)
    versions = select(Version.id).where(Version.model_id == model.id)
    if session.scalar(select(DecisionRecord.id).where(DecisionRecord.version_id.in_(versions)).limit(1)) is not None:
        raise Conflict(f"model {name!r} cannot be deleted: there are decisions by it; archive its versions instead")
    job = job_queue.find_unfinished(session, Job.model == name)
    if job is not None:
        raise Conflict(f"model {name!r} cannot be deleted: job {job.id} for it {job.deletion_blocker}")
    session.execute(delete(AliasEvent).where(AliasEvent.model_id == model.id))
    session.execute(delete(Version).where(Version.model_id == model.id))
    session.execute(delete(ModelName).where(ModelName.id == model.id))


def _references(session: Session, model: ModelName, version: Version) -> Iterator[str]:
    if session.scalar(select(DecisionRecord.id).where(DecisionRecord.version_id == version.id).limit(1)) is not None:
        yield "there are decisions by it; archive it instead"
    of_version = select(AliasEvent.alias).where(AliasEvent.model_id == model.id, AliasEvent.version_id == version.id)
    alias = session.scalar(of_version.limit(1))
    if alias is not None:
        yield f"alias {alias!r} points at it, or did earlier; archive it instead"
    child = session.scalars(select(Version).where(Version.parent_id == version.id).limit(1)).first()
    if child is not None:
        yield f"version {child.number} of model {child.model.name!r} was pruned from it; archive it instead"
    is_used = Job.payload["version_id"].as_string() == version.id
    job = job_queue.find_unfinished(session, Job.model == model.name, is_used)
    if job is not None:
        yield f"job {job.id} uses it and {job.deletion_blocker}"


def _text_faults(text: str, tags: Sequence[str]) -> Iterator[Fault]:
    if len(text) > MAX_DESCRIPTION_CHARS or not all(char.isprintable() or char in LINE_CHARS for char in text):
        legal = f"has at most {MAX_DESCRIPTION_CHARS} characters, all printable or line ends"
        yield Fault("/description", "invalid", legal)
    for place, tag in enumerate(tags):
        if not 1 <= len(tag) <= MAX_TAG_CHARS or not tag.isprintable():
            yield Fault(f"/tags/{place}", "invalid", f"a tag has 1 to {MAX_TAG_CHARS} printable characters")
    yield from _duplicate_faults("/tags", tags)


def _point_faults(session: Session, models: ModelCache, row: ModelName, point: object) -> Iterator[Fault]:
    """Yield nothing if one of the newest versions accepts the point, else the point's faults for the newest version."""
    if point is None:
        return
    faults: list[Fault] = []
    for version in _newest_versions(session, models, row):
        try:
            espalier.operating_point_from_dict(point, version.model.schema.classes)
        except espalier.ConfigError as error:
            faults = faults or [Fault(f"/operating_point{one.path}", one.code, one.message) for one in error.faults]
        else:
            return
    yield from faults or [Fault("/operating_point", "not_legal", "the model has no version")]


def _mask_faults(session: Session, models: ModelCache, row: ModelName, mask: Sequence[str]) -> Iterator[Fault]:
    """Yield the faults of a mask, such as a new attribute that none of the newest versions has (a misspelled name)."""
    yield from _duplicate_faults("/mask", mask)
    unknown = set(mask).difference(row.mask or ())
    for version in _newest_versions(session, models, row) if unknown else ():
        unknown -= version.attributes
        if not unknown:
            break
    for place, attribute in enumerate(mask):
        if attribute in unknown:
            legal = f"no version of the model (of the newest {MAX_VERSIONS_READ}) has this attribute"
            yield Fault(f"/mask/{place}", "unknown_value", legal)


def _duplicate_faults(pointer: str, names: Sequence[str]) -> Iterator[Fault]:
    first = {name: place for place, name in reversed(list(enumerate(names)))}
    for place, name in enumerate(names):
        if place > first[name]:
            yield Fault(f"{pointer}/{place}", "duplicate", "is given twice")


def _newest_versions(session: Session, models: ModelCache, row: ModelName) -> Iterator[LoadedVersion]:
    query = select(Version.id).where(Version.model_id == row.id).order_by(Version.number.desc())
    for version_id in session.scalars(query.limit(MAX_VERSIONS_READ)).all():
        yield models.get(session, version_id)
