"""Store, find and list models and their versions."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session, undefer

import espalier
from service.database import MODEL_NAME, MODEL_NAME_RULE
from service.database.engine import insert_new
from service.database.tables import ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories.pagination import Page, page

MODELS = ModelName.metadata.tables[ModelName.__tablename__]
MAX_LISTED = 100_000  # versions in a list without pages
OF_MODEL = select(Version.id).join(ModelName).where(ModelName.name == bindparam("model"), Version.archived.is_(None))
NEWEST = OF_MODEL.order_by(Version.number.desc()).limit(1)  # used if neither a number nor an alias names a version


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that has no number yet, from a training, a pruning or an import."""

    model: str
    document: bytes
    preset: str
    summary: Mapping[str, Any]
    seconds: float
    trace: Mapping[str, Any] | None = None
    parent_id: str | None = None
    data_set_id: str | None = None
    holdout_data_set_id: str | None = None

    @classmethod
    def of(cls, model: espalier.Model, *, name: str, seconds: float = 0.0, **origin: Any) -> "NewVersion":
        """Return a decoded model as a new version of the model `name`; `origin` has the other fields."""
        document, summary = espalier.to_json(model), espalier.summary(model)
        return cls(name, document, model.config.preset, summary, seconds, **origin)


def check_model_name(name: str) -> None:
    """Raise `ValidationFailed` if the name does not match `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`."""
    if not re.fullmatch(MODEL_NAME, name):
        raise ValidationFailed.of("/model", "invalid", MODEL_NAME_RULE)


def add_version(session: Session, new: NewVersion, *, job_id: str | None = None) -> Version:
    """Store and number the next version of a new or known model; raise `Conflict` if the model is deleted meanwhile."""
    check_model_name(new.model)
    session.execute(insert_new(session.get_bind().dialect.name, MODELS, "name"), {"name": new.model})
    model = session.execute(  # one statement: two workers never get the same number
        update(ModelName)
        .where(ModelName.name == new.model)
        .values(last_number=ModelName.last_number + 1)
        .returning(ModelName.id, ModelName.last_number)
    ).one_or_none()
    if model is None:
        raise Conflict(f"model {new.model!r} was deleted at the same time by another request")
    version = Version(
        model_id=model.id,
        number=model.last_number,
        document_sha256=hashlib.sha256(new.document).hexdigest(),
        job_id=job_id,
        **{field.name: getattr(new, field.name) for field in fields(new) if field.name != "model"},
    )
    session.add(version)
    session.flush()
    return version


def find_model(session: Session, name: str, *, lock: bool = False) -> ModelName:
    """Return a model or raise `NotFound`; with `lock`, read its current row and lock it until the transaction ends.

    Changes of aliases and settings, and archiving or deleting a version, lock the model first.
    """
    query = select(ModelName).where(ModelName.name == name)
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    model = session.scalars(query).first() if _is_text(name) else None
    if model is None:
        raise NotFound("model", name)
    return model


def list_models(session: Session, *, names: Collection[str] | None = None, **query: Any) -> Page[ModelName]:
    """Return a page of models, newest first; `names` limits the models; `query` has ``limit`` and ``cursor``."""
    where = [] if names is None else [ModelName.name.in_(names)]
    return page(session, ModelName, where, options=[undefer(ModelName.newest_version)], **query)


def find_version(session: Session, name: str, number: int | None = None) -> Version:
    """Return a version without its document, or raise `NotFound`; default: the newest version, even if archived."""
    query = select(Version).join(ModelName).where(ModelName.name == name).order_by(Version.number.desc()).limit(1)
    if number is not None:
        query = query.where(Version.number == number)
    version = _is_text(name) and session.scalars(query).first()
    if not version:
        find_model(session, name)
        raise NotFound("version of model", name) if number is None else NotFound("version", f"{name}/{number}")
    return version


def newest_version_id(session: Session, name: str) -> str:
    """Return the id of the newest version that is not archived; raise `NotFound`, or `Conflict` if all are archived."""
    version_id: str | None = session.scalar(NEWEST, {"model": name}) if _is_text(name) else None
    if version_id is None:
        find_version(session, name)
        raise Conflict(f"all versions of model {name!r} are archived: they no longer answer")
    return version_id


def list_versions(session: Session, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[Version]:
    """Return a page of the versions of a model, newest first, without their documents."""
    model = find_model(session, name)
    return page(session, Version, [Version.model_id == model.id], limit=limit, cursor=cursor)


def version_numbers(session: Session, *, names: Collection[str] | None = None) -> Sequence[tuple[str, int, bool]]:
    """Return (model, number, is not archived) of the newest `MAX_LISTED` versions of the models `names` (None: all)."""
    query = select(ModelName.name, Version.number, Version.archived.is_(None)).join_from(Version, ModelName)
    query = query if names is None else query.where(ModelName.name.in_(names))
    return session.execute(query.order_by(Version.id.desc()).limit(MAX_LISTED)).all()


def _is_text(name: str) -> bool:
    """Return whether PostgreSQL accepts the name as text: it refuses NUL."""
    return "\0" not in name
