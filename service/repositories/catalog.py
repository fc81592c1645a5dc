"""Named queries on data sets, models and versions, and the cache of decoded models.

Versions never change, so a decoded model is never out of date. Lists are paged from the newest to the oldest.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from sqlalchemy import bindparam, delete, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, undefer

import espalier
from espalier import Fault
from service.database import MODEL_NAME
from service.database.clock import new_id, utc_now
from service.database.tables import DataSet, Job, ModelName, State, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories.pages import Page, page

MOST_LISTED = 100_000  # versions where all are given at once
OF_MODEL = select(Version.id).join(ModelName).where(ModelName.name == bindparam("model"), Version.archived.is_(None))
NEWEST = OF_MODEL.order_by(Version.number.desc()).limit(1)  # the version of a model that answers if none is named


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A model version before it has a number: what a training, a pruning or an import brings."""

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
    """A version ready to answer: its decoded model and what a decision has to name."""

    id: str
    model_name: str
    number: int
    document_sha256: str
    model: espalier.Model
    attributes: frozenset[str]


# --- data sets


class Described(Protocol):
    """What is entered of a data set besides its cells: `espalier.Dataset`, and those of `service.usecases.staging`."""

    @property
    def schema(self) -> espalier.Schema:
        """Kind, role and categories of each column."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the data."""
        ...


def add_data_set(session: Session, *, name: str, dataset: Described) -> DataSet:
    """Enter a data set; its cells are saved by `storage.save` in the same transaction, and then its fingerprint.

    Raises:
        ValidationFailed: the name is empty, longer than 200 signs or holds a control character.
    """
    check_data_set_name(name)
    row = DataSet(
        id=new_id(),
        name=name,
        n_rows=dataset.n_rows,
        n_attributes=len(dataset.schema.attributes),
        declared=dataset.schema.to_dict(),
        task=dataset.schema.task,
        notices=list(dataset.notices),
        fingerprint="",  # it may still be sought, while the cells are saved
        created=utc_now(),
    )
    session.add(row)
    session.flush()
    return row


def check_data_set_name(name: str, *, pointer: str = "/name") -> None:
    """Refuse a name that cannot be shown or stored.

    Raises:
        ValidationFailed: the name is empty, longer than 200 signs or holds a control character.
    """
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise ValidationFailed([Fault(pointer, "invalid", "the name of a data set has 1 to 200 printable characters")])


def find_data_set(session: Session, data_set_id: str) -> DataSet:
    """The data set of this id.

    Raises:
        NotFound: there is none.
    """
    row = None if "\0" in data_set_id else session.get(DataSet, data_set_id)  # PostgreSQL takes no such text
    if row is None:
        raise NotFound("data set", data_set_id)
    return row


def list_data_sets(session: Session, *, limit: int = 50, cursor: str | None = None) -> Page[DataSet]:
    """Data sets, newest first.

    Raises:
        ValidationFailed: the limit or the cursor is not legal.
    """
    return page(session, DataSet, limit=limit, cursor=cursor)


def delete_data_set(session: Session, data_set_id: str) -> None:
    """Remove a data set and its cells.

    Raises:
        NotFound: there is none of this id.
        Conflict: a job that is not finished uses it, or a version was made with it; the message says which.
    """
    _lock_unused(session, data_set_id)
    session.execute(delete(DataSet).where(DataSet.id == data_set_id))


def redeclare_data_set(session: Session, data_set_id: str, *, dataset: Described, was: str) -> DataSet:
    """Enter another declaration of the same rows; cells and fingerprint are replaced in the same transaction.

    Raises:
        NotFound: there is none of this id.
        Conflict: it is used, as `delete_data_set` says, or is no longer the one of the fingerprint `was`.
    """
    row = _lock_unused(session, data_set_id)
    if row.fingerprint != was:
        raise Conflict(f"data set {data_set_id} was declared anew by another request; look at it and try again")
    row.n_attributes = len(dataset.schema.attributes)
    row.declared = dataset.schema.to_dict()
    row.task = dataset.schema.task
    row.notices = list(dataset.notices)
    session.flush()
    return row


def lock_data_set(session: Session, data_set_id: str) -> DataSet:
    """Find a data set as it is now, and hold its row until the transaction ends: nobody changes, deletes or uses it.

    Raises:
        NotFound: there is none, or it was deleted while others held it.
    """
    is_text = "\0" not in data_set_id  # as above
    row = session.get(DataSet, data_set_id, with_for_update=True, populate_existing=True) if is_text else None
    if row is None:
        raise NotFound("data set", data_set_id)
    return row


def _lock_unused(session: Session, data_set_id: str) -> DataSet:
    row = lock_data_set(session, data_set_id)  # a job that starts to use it now has to wait
    users = or_(Job.data_set_id == data_set_id, Job.holdout_data_set_id == data_set_id)
    job = session.scalar(select(Job).where(users, Job.state.in_((State.QUEUED, State.RUNNING))).limit(1))
    if job is not None:
        raise Conflict(f"data set {data_set_id} is used by job {job.id}, which {job.deletion_blocker}")
    trained = or_(Version.data_set_id == data_set_id, Version.holdout_data_set_id == data_set_id)
    version = session.scalars(select(Version).where(trained).limit(1)).first()
    if version is not None:
        use = "was trained on" if version.data_set_id == data_set_id else "was measured or pruned by the rows of"
        raise Conflict(f"version {version.number} of model {version.model.name!r} {use} data set {data_set_id}")
    return row


# --- models and versions


def check_model_name(name: str, *, pointer: str = "/model") -> None:
    """Refuse what cannot be the name of a model.

    Raises:
        ValidationFailed: the name does not match `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    """
    if not re.fullmatch(MODEL_NAME, name):
        legal = "a model name has 1 to 64 of the signs A-Z a-z 0-9 . _ - and begins with a letter or a digit"
        raise ValidationFailed([Fault(pointer, "invalid", legal)])


def add_version(session: Session, new: NewVersion, *, job_id: str | None = None) -> Version:
    """Give the version the next number of its model (made if it is the first) and keep it.

    Raises:
        ValidationFailed: the model's name is not legal.
        Conflict: the model was deleted meanwhile.
    """
    check_model_name(new.model)
    model_id = _model_id(session, new.model)
    number = session.execute(  # one statement, so two workers never get the same number
        update(ModelName)
        .where(ModelName.id == model_id)
        .values(last_number=ModelName.last_number + 1)
        .returning(ModelName.last_number)
    ).scalar_one_or_none()
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
    """The model of this name.

    Raises:
        NotFound: there is none.
    """
    row = None if "\0" in name else session.scalars(select(ModelName).where(ModelName.name == name)).first()
    if row is None:
        raise NotFound("model", name)
    return row


def list_models(
    session: Session, *, names: Collection[str] | None = None, limit: int = 50, cursor: str | None = None
) -> Page[ModelName]:
    """Models, newest first; of these names only, if any are given.

    Raises:
        ValidationFailed: the limit or the cursor is not legal.
    """
    where = [] if names is None else [ModelName.name.in_(names)]
    return page(session, ModelName, where, limit=limit, cursor=cursor)


def find_version(session: Session, name: str, number: int | None = None) -> Version:
    """A version by model name and number, the newest one without a number; its document is not loaded.

    Raises:
        NotFound: there is no such model or no such version.
    """
    if "\0" in name:  # PostgreSQL takes no such text
        raise NotFound("model", name)
    query = select(Version).join(ModelName).where(ModelName.name == name).order_by(Version.number.desc()).limit(1)
    if number is not None:
        query = query.where(Version.number == number)
    row = session.scalars(query).first()
    if row is None:
        find_model(session, name)
        raise NotFound("version of model", name) if number is None else NotFound("version", f"{name}/{number}")
    return row


def newest_version_id(session: Session, name: str) -> str:
    """The id of the newest version that answers.

    Raises:
        NotFound: there is no such model, or it has no version.
        Conflict: all its versions are archived.
    """
    if "\0" in name:  # as above
        raise NotFound("model", name)
    found = session.scalar(NEWEST, {"model": name})
    if found is None:
        find_version(session, name)
        raise Conflict(f"all versions of model {name!r} are archived: they answer no more")
    return found


def lock_model(session: Session, name: str) -> ModelName:
    """Find a model as it is now, and hold its row until the transaction ends.

    Its versions and aliases are added, changed and deleted one after the other, by who holds it.

    Raises:
        NotFound: there is none, or it was deleted while others held it.
    """
    query = select(ModelName).where(ModelName.name == name).with_for_update()
    row = None if "\0" in name else session.scalars(query, execution_options={"populate_existing": True}).first()
    if row is None:
        raise NotFound("model", name)
    return row


def list_versions(session: Session, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[Version]:
    """The versions of a model, newest first, without their documents.

    Raises:
        NotFound: there is no such model.
        ValidationFailed: the limit or the cursor is not legal.
    """
    model = find_model(session, name)
    return page(session, Version, [Version.model_id == model.id], limit=limit, cursor=cursor)


def version_numbers(session: Session, *, names: Collection[str] | None = None) -> Sequence[tuple[str, int, bool]]:
    """Model name and number of every version, newest first, and whether it answers; of these models, if any."""
    query = select(ModelName.name, Version.number, Version.archived).join(ModelName, Version.model_id == ModelName.id)
    query = query if names is None else query.where(ModelName.name.in_(names))
    found = session.execute(query.order_by(Version.id.desc()).limit(MOST_LISTED))
    return [(name, number, archived is None) for name, number, archived in found]


def document(session: Session, version_id: str) -> bytes:
    """The canonical document of a version, byte for byte.

    Raises:
        NotFound: there is no such version.
    """
    found = session.scalar(select(Version.document).where(Version.id == version_id))
    if found is None:
        raise NotFound("version", version_id)
    return found


def trace(session: Session, version_id: str) -> dict[str, Any] | None:
    """What the pruning that made this version did, node by node; None if it was not made by pruning.

    Raises:
        NotFound: there is no such version.
    """
    found = session.execute(select(Version.trace).where(Version.id == version_id)).first()
    if found is None:
        raise NotFound("version", version_id)
    return _with_notes(found.trace)


def _with_notes(trace: Any) -> dict[str, Any] | None:
    """Give a trace as it is written now: until November 2026 there was one note at most."""
    if trace is None or "note" not in trace:
        return cast("dict[str, Any] | None", trace)
    return {**{name: value for name, value in trace.items() if name != "note"}, "notes": [trace["note"]]}


def load_version(session: Session, version_id: str) -> LoadedVersion:
    """Read and decode a version; `service.usecases.model_cache` does so once only.

    Raises:
        NotFound: there is no such version.
    """
    row = session.get(Version, version_id, options=[undefer(Version.document)])
    if row is None:
        raise NotFound("version", version_id)
    try:
        model = espalier.from_json(row.document)
    except espalier.DocumentError as error:  # not the caller's fault, so not their error
        raise RuntimeError(f"the stored document of version {version_id} is damaged") from error
    return LoadedVersion(
        id=row.id,
        model_name=row.model.name,
        number=row.number,
        document_sha256=hashlib.sha256(row.document).hexdigest(),  # of what is there, not of what was there
        model=model,
        attributes=frozenset(attribute.name for attribute in model.schema.attributes),
    )


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
