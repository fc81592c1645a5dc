"""Models and their versions.

Versions never change, so a decoded model is never out of date. Lists are paged from the newest to the oldest.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import bindparam, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database import MODEL_NAME
from service.database.clock import new_id, utc_now
from service.database.tables import ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories.pages import Page, page

MAX_LISTED = 100_000  # versions where all are listed at once
OF_MODEL = select(Version.id).join(ModelName).where(ModelName.name == bindparam("model"), Version.archived.is_(None))
NEWEST = OF_MODEL.order_by(Version.number.desc()).limit(1)  # the version of a model that answers if none is named


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A model version before it has a number, made by a training, a pruning or an import."""

    model: str
    document: bytes
    preset: str
    summary: Mapping[str, Any]
    seconds: float
    trace: Mapping[str, Any] | None = None
    parent_id: str | None = None
    data_set_id: str | None = None
    holdout_data_set_id: str | None = None


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A version ready to answer: its decoded model, and what a decision record names."""

    id: str
    model_name: str
    number: int
    document_sha256: str
    model: espalier.Model
    attributes: frozenset[str]


def check_model_name(name: str, *, pointer: str = "/model") -> None:
    """Raise `ValidationFailed` if the name does not match `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`."""
    if not re.fullmatch(MODEL_NAME, name):
        legal = "a model name has 1 to 64 of the signs A-Z a-z 0-9 . _ - and begins with a letter or a digit"
        raise ValidationFailed([Fault(pointer, "invalid", legal)])


def add_version(session: Session, new: NewVersion, *, job_id: str | None = None) -> Version:
    """Store a version under the next number of its model; the first one makes the model.

    Raises:
        ValidationFailed: The model's name is not legal.
        Conflict: The model was deleted meanwhile.
    """
    check_model_name(new.model)
    model_id = _model_id(session, new.model)
    number = session.scalar(  # one statement, so two workers never get the same number
        update(ModelName)
        .where(ModelName.id == model_id)
        .values(last_number=ModelName.last_number + 1)
        .returning(ModelName.last_number)
    )
    if number is None:
        raise Conflict(f"model {new.model!r} was deleted at the same time by another request")
    version = Version(
        id=new_id(),
        model_id=model_id,
        number=number,
        document=new.document,
        document_sha256=hashlib.sha256(new.document).hexdigest(),
        parent_id=new.parent_id,
        data_set_id=new.data_set_id,
        holdout_data_set_id=new.holdout_data_set_id,
        job_id=job_id,
        preset=new.preset,
        summary=dict(new.summary),
        trace=None if new.trace is None else dict(new.trace),
        seconds=new.seconds,
        created=utc_now(),
    )
    session.add(version)
    session.flush()
    return version


def find_model(session: Session, name: str) -> ModelName:
    """Return a model.

    Raises:
        NotFound: There is none.
    """
    found = _is_text(name) and session.scalars(select(ModelName).where(ModelName.name == name)).first()
    if not found:
        raise NotFound("model", name)
    return found


def lock_model(session: Session, name: str) -> ModelName:
    """Return a model as it is now, and lock its row until the transaction ends.

    Whoever archives or deletes versions, or changes aliases or settings, locks the model first.

    Raises:
        NotFound: There is none, or it was deleted while another transaction held the lock.
    """
    query = select(ModelName).where(ModelName.name == name).with_for_update()
    found = _is_text(name) and session.scalars(query, execution_options={"populate_existing": True}).first()
    if not found:
        raise NotFound("model", name)
    return found


def list_models(
    session: Session, *, names: Collection[str] | None = None, limit: int = 50, cursor: str | None = None
) -> Page[ModelName]:
    """Return a page of models, newest first; of `names` only, if they are given.

    Raises:
        ValidationFailed: The limit or the cursor is not legal.
    """
    where = [] if names is None else [ModelName.name.in_(names)]
    return page(session, ModelName, where, limit=limit, cursor=cursor)


def find_version(session: Session, name: str, number: int | None = None) -> Version:
    """Return a version without its document; without a number the newest one.

    Raises:
        NotFound: There is no such model or no such version.
    """
    query = select(Version).join(ModelName).where(ModelName.name == name).order_by(Version.number.desc()).limit(1)
    if number is not None:
        query = query.where(Version.number == number)
    found = _is_text(name) and session.scalars(query).first()
    if not found:
        find_model(session, name)
        raise NotFound("version of model", name) if number is None else NotFound("version", f"{name}/{number}")
    return found


def newest_version_id(session: Session, name: str) -> str:
    """Return the id of the newest version that answers.

    Raises:
        NotFound: There is no such model, or it has no version.
        Conflict: All its versions are archived.
    """
    found: str | None = session.scalar(NEWEST, {"model": name}) if _is_text(name) else None
    if found is None:
        find_version(session, name)
        raise Conflict(f"all versions of model {name!r} are archived: they answer no more")
    return found


def list_versions(session: Session, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[Version]:
    """Return a page of the versions of a model, newest first, without their documents.

    Raises:
        NotFound: There is no such model.
        ValidationFailed: The limit or the cursor is not legal.
    """
    model = find_model(session, name)
    return page(session, Version, [Version.model_id == model.id], limit=limit, cursor=cursor)


def version_numbers(session: Session, *, names: Collection[str] | None = None) -> Sequence[tuple[str, int, bool]]:
    """Return model name, number and "it answers" of every version, newest first; of models in `names`, if given."""
    query = select(ModelName.name, Version.number, Version.archived.is_(None)).join_from(Version, ModelName)
    query = query if names is None else query.where(ModelName.name.in_(names))
    found = session.execute(query.order_by(Version.id.desc()).limit(MAX_LISTED))
    return [(name, number, answers) for name, number, answers in found]


def document(session: Session, version_id: str) -> bytes:
    """Return the canonical document of a version, byte for byte.

    Raises:
        NotFound: There is no such version.
    """
    found = session.scalar(select(Version.document).where(Version.id == version_id))
    if found is None:
        raise NotFound("version", version_id)
    return found


def trace(session: Session, version_id: str) -> dict[str, Any] | None:
    """Return what the pruning that made this version did, node by node; None if it was not made by pruning.

    Raises:
        NotFound: There is no such version.
    """
    found = session.execute(select(Version.trace).where(Version.id == version_id)).first()
    if found is None:
        raise NotFound("version", version_id)
    return _with_notes(found.trace)


def load_version(session: Session, version_id: str) -> LoadedVersion:
    """Read and decode a version; `service.usecases.model_cache` does so once only.

    Raises:
        NotFound: There is no such version.
    """
    query = select(ModelName.name, Version.number, Version.document).join_from(Version, ModelName)
    row = session.execute(query.where(Version.id == version_id)).first()
    if row is None:
        raise NotFound("version", version_id)
    try:
        model = espalier.from_json(row.document)
    except espalier.DocumentError as error:  # not the caller's fault, so not their error
        raise RuntimeError(f"the stored document of version {version_id} is damaged") from error
    return LoadedVersion(
        id=version_id,
        model_name=row.name,
        number=row.number,
        document_sha256=hashlib.sha256(row.document).hexdigest(),  # of what is there, not of what was there
        model=model,
        attributes=frozenset(attribute.name for attribute in model.schema.attributes),
    )


def _is_text(name: str) -> bool:
    """Return whether PostgreSQL takes the name as a text: it refuses NUL."""
    return "\0" not in name


def _with_notes(trace: Any) -> dict[str, Any] | None:
    """Return a trace in its present form: until November 2026 there was one note at most."""
    if trace is None or "note" not in trace:
        return cast("dict[str, Any] | None", trace)
    return {**{name: value for name, value in trace.items() if name != "note"}, "notes": [trace["note"]]}


def _model_id(session: Session, name: str) -> str:
    query = select(ModelName.id).where(ModelName.name == name)
    found = session.scalar(query)
    if found is not None:
        return found
    try:
        with session.begin_nested():
            model = ModelName(id=new_id(), name=name, created=utc_now())
            session.add(model)
        return model.id
    except IntegrityError:  # another worker made it between the two statements
        return session.scalars(query).one()
