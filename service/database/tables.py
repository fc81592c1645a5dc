"""The SQL tables, with their constraints, indexes and naming convention, but without queries.

    data_sets 1 ── n data_set_chunks
        │ 1
        ├──── n jobs 1 ── n job_events
        │         │ 1
        └──── n versions n ── 1 models
                  │ 1
                  └── n decisions

    jobs: a training or a pruning creates one version; the decisions of a prediction job are its result
    outcomes: the true class or number for a decision, with the version that made the decision
    alias_events: the changes of the version that an alias points at
    idempotent_requests: requests with an Idempotency-Key and their answers, until they expire
    keys: API keys; other tables have the ids of keys, but no foreign keys to this table

Ids are UUIDv7 as text and sort by time of creation. There are two exceptions: the ids of job_events are numbers, and
the id of the key from ESPALIER_ADMIN_KEY is the UUID in that key's token. Times are UTC.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

import orjson
from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    false,
    literal_column,
)
from sqlalchemy.ext.associationproxy import AssociationProxy, association_proxy
from sqlalchemy.orm import DeclarativeBase, Mapped, column_property, mapped_column, relationship

from service.database.clock import UtcTime, new_id, utc_now

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

Id = String(36)
Digest = String(64)


class State(StrEnum):
    """State of a job; a job in one of the last four states has ended."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"


class Kind(StrEnum):
    """Kind of a job; `service.worker.handlers.HANDLERS` has a function for each."""

    TRAIN = "train"
    PRUNE = "prune"
    EVALUATE = "evaluate"
    PREDICT = "predict"


class Scope(StrEnum):
    """Scope of a key; a route that has scopes needs one of its scopes, or `admin`."""

    PREDICT = "predict"
    READ = "read"
    TRAIN = "train"
    AUDIT = "audit"
    ADMIN = "admin"


class Json(JSON):
    """JSON type that detects a change from 1 to true or 1.0, although these are equal in Python."""

    def compare_values(self, x: Any, y: Any) -> bool:
        """Return whether two values are the same JSON."""
        return orjson.dumps(x) == orjson.dumps(y)


class Table(DeclarativeBase):
    """Base of all tables, which share one metadata and one naming convention."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar = {datetime: UtcTime(), float: Double(), dict[str, Any]: Json(none_as_null=True)}


class Identified(Table):
    """A table whose primary key is a UUID, by default a new UUIDv7."""

    __abstract__ = True

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)


class Key(Identified):
    """An API key; only the hash of its secret is stored."""

    __tablename__ = "keys"

    name: Mapped[str] = mapped_column(String(200))  # not unique: a key may be replaced by one of the same name
    secret_sha256: Mapped[str] = mapped_column(Digest)
    scopes: Mapped[list[str]] = mapped_column(Json)
    models: Mapped[list[str] | None] = mapped_column(Json(none_as_null=True))  # names; None: all models
    created: Mapped[datetime] = mapped_column(default=utc_now)
    expires: Mapped[datetime | None]
    revoked: Mapped[datetime | None]


class IdempotentRequest(Identified):
    """A request with an Idempotency-Key. It is claimed while it runs; then its answer is stored until `expires`."""

    __tablename__ = "idempotent_requests"
    __table_args__ = (
        UniqueConstraint("owner", "key_sha256"),
        CheckConstraint("(status IS NULL) = (claimed_until IS NOT NULL)", name="running_or_answered"),
    )

    owner: Mapped[str] = mapped_column(Id)  # id of the caller's API key; empty where keys are off
    key_sha256: Mapped[str] = mapped_column(Digest)  # of the Idempotency-Key
    token: Mapped[str] = mapped_column(Id)  # new at each claim; guards the answer
    claimed_until: Mapped[datetime | None]  # by the database's clock; None once it is answered
    request_sha256: Mapped[str | None] = mapped_column(Digest)  # of method, path, query, type, encoding and body
    status: Mapped[int | None]
    headers: Mapped[dict[str, Any] | None]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    expires: Mapped[datetime] = mapped_column(index=True)  # by the database's clock


class DataSet(Identified):
    """A data set; its rows are in `data_set_chunks`, or, if it has a `reference`, in files below the store."""

    __tablename__ = "data_sets"
    __table_args__ = (CheckConstraint("n_rows >= 0", name="n_rows_not_negative"),)

    name: Mapped[str] = mapped_column(String(200))
    n_rows: Mapped[int] = mapped_column(BigInteger)
    n_attributes: Mapped[int]
    declared: Mapped[dict[str, Any]]  # the schema in its JSON form
    task: Mapped[str | None] = mapped_column(String(20))  # classification or regression; None without a target
    notices: Mapped[list[dict[str, Any]]] = mapped_column(Json)  # JSON forms of `espalier.Notice`
    fingerprint: Mapped[str] = mapped_column(Digest)  # SHA-256 of schema and cells
    reference: Mapped[str | None] = mapped_column(Text)  # path of its files below the store; None: in the database
    files: Mapped[list[dict[str, Any]] | None] = mapped_column(Json(none_as_null=True))  # fields of `StoreFile`
    created: Mapped[datetime] = mapped_column(default=utc_now)


class DataSetChunk(Table):
    """Consecutive rows of a data set, as `service.serialization.dataset_chunks` encodes them."""

    __tablename__ = "data_set_chunks"
    __table_args__ = (
        CheckConstraint("n_rows > 0", name="n_rows_positive"),
        CheckConstraint("first_row >= 0", name="first_row_not_negative"),
    )

    data_set_id: Mapped[str] = mapped_column(ForeignKey("data_sets.id", ondelete="CASCADE"), primary_key=True)
    first_row: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    n_rows: Mapped[int]
    content: Mapped[bytes] = mapped_column(LargeBinary)


class ModelName(Identified):
    """A model: a name, and the settings for all its versions."""

    __tablename__ = "models"
    __table_args__ = (
        CheckConstraint("last_number >= 0", name="last_number_not_negative"),
        CheckConstraint("retention_days >= 1", name="retention_positive"),
    )

    name: Mapped[str] = mapped_column(String(64), unique=True)
    last_number: Mapped[int] = mapped_column(default=0)  # the highest number of a version, even of a deleted one
    newest_version: Mapped[int | None] = column_property(  # the highest number of a version that is not deleted
        literal_column("(SELECT max(number) FROM versions WHERE model_id = models.id)", Integer), deferred=True
    )
    created: Mapped[datetime] = mapped_column(default=utc_now)
    description: Mapped[str | None] = mapped_column(Text)
    tags: Mapped[list[str] | None] = mapped_column(Json(none_as_null=True))
    mask: Mapped[list[str] | None] = mapped_column(Json(none_as_null=True))  # attributes that are not logged
    retention_days: Mapped[int | None]  # of its decisions; None: as in the settings
    operating_point: Mapped[dict[str, Any] | None]  # {"label", "probability"}: predict label from this probability on


class Job(Identified):
    """A job; `service.repositories.job_queue.TRANSITIONS` has the changes of its state."""

    __tablename__ = "jobs"
    __table_args__ = (
        CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')", name="state"),
        CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name="running_has_lease"),
        CheckConstraint("(lease_token IS NULL) = (lease_expires_at IS NULL)", name="lease_has_end"),
        CheckConstraint("attempt BETWEEN 0 AND max_attempts", name="attempts_capped"),
        CheckConstraint("progress BETWEEN 0 AND 1", name="progress_is_share"),
        Index(None, "state", "run_at", "id"),
        Index(None, "model"),
    )

    kind: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(10))
    model: Mapped[str | None] = mapped_column(String(64))  # name of the model that the job is for
    key_id: Mapped[str | None] = mapped_column(Id)  # of the key that requested or last retried it; None: keys were off
    data_set_id: Mapped[str | None] = mapped_column(ForeignKey("data_sets.id", ondelete="SET NULL"), index=True)
    holdout_data_set_id: Mapped[str | None] = mapped_column(ForeignKey("data_sets.id", ondelete="SET NULL"), index=True)
    payload: Mapped[dict[str, Any]] = mapped_column(deferred=True)  # as the handler reads it; may list a million rows
    result: Mapped[dict[str, Any] | None]  # of a job that has succeeded
    error: Mapped[dict[str, Any] | None]  # {code, message, errors: [{pointer, code, message}]} of the last failure
    attempt: Mapped[int] = mapped_column(default=0)  # attempts begun; released ones do not count
    max_attempts: Mapped[int]
    run_at: Mapped[datetime]  # not claimed before this moment
    lease_token: Mapped[str | None] = mapped_column(Id)  # new at each claim; guards every write of the worker
    lease_expires_at: Mapped[datetime | None]  # by the database's clock
    worker: Mapped[str | None] = mapped_column(String(120))  # host and process of the last claim
    cancel_requested: Mapped[bool] = mapped_column(default=False, server_default=false())
    progress: Mapped[float] = mapped_column(default=0.0)  # share of the work of this attempt that is done
    phase: Mapped[str] = mapped_column(String(60), default="")
    created: Mapped[datetime]
    started: Mapped[datetime | None]  # start of the last attempt
    finished: Mapped[datetime | None]

    @property
    def deletion_blocker(self) -> str:
        """The reason why data used by this unfinished job cannot be deleted, as the end of a sentence."""
        if self.cancel_requested:
            return "is being cancelled; try again when it has ended"
        return "is not finished; cancel the job first"


class JobEvent(Table):
    """One transition of a job, or a write that was refused because the worker had lost its lease."""

    __tablename__ = "job_events"

    # The id has 64 bits in both databases, but SQLite autoincrements only a column declared INTEGER.
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    event: Mapped[str] = mapped_column(String(20))
    from_state: Mapped[str | None] = mapped_column(String(10))
    to_state: Mapped[str] = mapped_column(String(10))
    attempt: Mapped[int]
    worker: Mapped[str | None] = mapped_column(String(120))
    reason: Mapped[str | None] = mapped_column(Text)


class Version(Identified):
    """A version of a model, with an immutable document; a version made by pruning has a parent."""

    __tablename__ = "versions"
    __table_args__ = (UniqueConstraint("model_id", "number"), CheckConstraint("number >= 1", name="number_from_one"))

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    number: Mapped[int]
    document: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)  # canonical JSON
    document_sha256: Mapped[str] = mapped_column(Digest)
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("versions.id"), index=True)
    data_set_id: Mapped[str | None] = mapped_column(ForeignKey("data_sets.id"), index=True)
    holdout_data_set_id: Mapped[str | None] = mapped_column(ForeignKey("data_sets.id"), index=True)
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id"), unique=True)  # unique: a job creates one version
    preset: Mapped[str] = mapped_column(String(40))
    summary: Mapped[dict[str, Any]]
    trace: Mapped[dict[str, Any] | None] = mapped_column(Json(none_as_null=True), deferred=True)  # of the pruning
    seconds: Mapped[float]  # of training or pruning
    created: Mapped[datetime] = mapped_column(default=utc_now)
    archived: Mapped[datetime | None]  # when it was archived; it no longer answers

    model: Mapped[ModelName] = relationship(lazy="joined", innerjoin=True)
    parent: Mapped["Version | None"] = relationship(remote_side="Version.id", lazy="joined", join_depth=1)
    parent_number: AssociationProxy[int | None] = association_proxy("parent", "number")


class AliasEvent(Table):
    """One change of an alias of a model. For each alias, the event with the highest number is in force."""

    __tablename__ = "alias_events"
    __table_args__ = (
        CheckConstraint("number >= 1", name="number_from_one"),
        CheckConstraint("before < number", name="before_is_earlier"),
    )

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"), primary_key=True)
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version_id: Mapped[str] = mapped_column(ForeignKey("versions.id"), index=True)
    event: Mapped[str] = mapped_column(String(10))  # set or rollback
    before: Mapped[int | None]  # number of the event that a rollback of this one restores
    at: Mapped[datetime]  # by the database's clock
    key_id: Mapped[str | None] = mapped_column(Id)  # of the caller's key; None: keys were off

    version: Mapped[Version] = relationship(lazy="joined", innerjoin=True)


class DecisionRecord(Identified):
    """The answers to one prediction request, or to a part of a stream or a job.

    Rows that were answered one by one are stored as JSON. A table is stored by column in `packed`.
    """

    __tablename__ = "decisions"
    __table_args__ = (
        CheckConstraint("n_rows >= 1", name="n_rows_positive"),
        CheckConstraint("(packed IS NULL) = (answers IS NOT NULL)", name="packed_or_row_by_row"),
        CheckConstraint("(job_id IS NULL) = (first_row IS NULL)", name="job_has_first_row"),
        Index(None, "job_id", "first_row", unique=True),
        Index(None, "version_id", "id"),
        Index(None, "subject", "id"),
    )

    version_id: Mapped[str] = mapped_column(ForeignKey("versions.id"))
    document_sha256: Mapped[str] = mapped_column(Digest)  # of the document that answered
    alias: Mapped[str | None] = mapped_column(String(64))
    key_id: Mapped[str | None] = mapped_column(Id)  # of the caller's key; None: keys were off
    time: Mapped[datetime] = mapped_column(index=True)
    n_rows: Mapped[int]
    inputs: Mapped[list[dict[str, Any]] | None] = mapped_column(Json(none_as_null=True))  # of unmasked attributes
    missing: Mapped[str] = mapped_column(String(20))  # the strategy for missing values
    answers: Mapped[list[dict[str, Any]] | None] = mapped_column(Json(none_as_null=True))
    nodes: Mapped[list[list[int]] | None] = mapped_column(Json(none_as_null=True))  # ids from the root
    packed: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)  # see `serialization.table_records`
    label: Mapped[str | None] = mapped_column(Text)  # as JSON text, of a single row stored as JSON; else None
    leaf: Mapped[int | None]  # of a single row stored as JSON; else None
    subject: Mapped[str | None] = mapped_column(String(200))
    milliseconds: Mapped[float]  # from the arrival of the request, or the start of its part, to the record
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id"))  # the records of a job are its result
    first_row: Mapped[int | None] = mapped_column(BigInteger)  # place of the first row in the job's data set
    operating_point: Mapped[dict[str, Any] | None]  # in force for the answers; None: there was none
    masked: Mapped[list[str] | None] = mapped_column(Json(none_as_null=True))  # attributes whose values are not stored
    erased: Mapped[datetime | None]  # when the inputs were erased


class Outcome(Table):
    """The true class or number for a decision. It is not deleted with the decision, so that accuracy has a history."""

    __tablename__ = "outcomes"
    __table_args__ = (
        CheckConstraint("(label IS NULL) = (value IS NOT NULL)", name="label_or_value"),
        CheckConstraint("(label IS NULL) = (answered_label IS NULL)", name="label_answered"),
        CheckConstraint("(value IS NULL) = (answered_value IS NULL)", name="value_answered"),
    )

    record_id: Mapped[str] = mapped_column(Id, primary_key=True)  # of the decision's record
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # of the decision's row in the record
    version_id: Mapped[str] = mapped_column(ForeignKey("versions.id", ondelete="CASCADE"), index=True)
    label: Mapped[str | None] = mapped_column(Text)  # the true label, as JSON text
    answered_label: Mapped[str | None] = mapped_column(Text)  # as JSON text
    value: Mapped[float | None]
    answered_value: Mapped[float | None]
    at: Mapped[datetime]
    key_id: Mapped[str | None] = mapped_column(Id)  # of the key that reported it; None: keys were off
