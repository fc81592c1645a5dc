"""All tables. `service.database.tables.NAMING` gives the names of constraints and indexes.

Revision: v0001
"""

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "data_sets",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.Column("n_attributes", sa.Integer(), nullable=False),
        sa.Column("declared", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("task", sa.String(20)),
        sa.Column("notices", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("reference", sa.Text()),
        sa.Column("files", sa.JSON(none_as_null=True)),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.CheckConstraint("n_rows >= 0", name="n_rows_not_negative"),
    )
    op.create_table(
        "idempotent_requests",
        sa.Column("owner", sa.String(36), nullable=False),
        sa.Column("key_sha256", sa.String(64), nullable=False),
        sa.Column("token", sa.String(36), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True)),
        sa.Column("request_sha256", sa.String(64)),
        sa.Column("status", sa.Integer()),
        sa.Column("headers", sa.JSON(none_as_null=True)),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False, index=True),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.CheckConstraint("(status IS NULL) = (claimed_until IS NOT NULL)", name="running_or_answered"),
        sa.UniqueConstraint("owner", "key_sha256"),
    )
    op.create_table(
        "keys",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("secret_sha256", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("models", sa.JSON(none_as_null=True)),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True)),
        sa.Column("revoked", sa.DateTime(timezone=True)),
        sa.Column("id", sa.String(36), primary_key=True),
    )
    op.create_table(
        "models",
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("last_number", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("tags", sa.JSON(none_as_null=True)),
        sa.Column("mask", sa.JSON(none_as_null=True)),
        sa.Column("retention_days", sa.Integer()),
        sa.Column("operating_point", sa.JSON(none_as_null=True)),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.CheckConstraint("last_number >= 0", name="last_number_not_negative"),
        sa.CheckConstraint("retention_days >= 1", name="retention_positive"),
    )
    op.create_table(
        "data_set_chunks",
        sa.Column("data_set_id", sa.String(36), sa.ForeignKey("data_sets.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("first_row", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("n_rows", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("first_row >= 0", name="first_row_not_negative"),
        sa.CheckConstraint("n_rows > 0", name="n_rows_positive"),
    )
    op.create_table(
        "jobs",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("model", sa.String(64), index=True),
        sa.Column("key_id", sa.String(36)),
        sa.Column("data_set_id", sa.String(36), sa.ForeignKey("data_sets.id", ondelete="SET NULL"), index=True),
        sa.Column("holdout_data_set_id", sa.String(36), sa.ForeignKey("data_sets.id", ondelete="SET NULL"), index=True),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True)),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("run_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_token", sa.String(36)),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.String(120)),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("phase", sa.String(60), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True)),
        sa.Column("finished", sa.DateTime(timezone=True)),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name="running_has_lease"),
        sa.CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')", name="state"),
        sa.CheckConstraint("(lease_token IS NULL) = (lease_expires_at IS NULL)", name="lease_has_end"),
        sa.CheckConstraint("attempt BETWEEN 0 AND max_attempts", name="attempts_capped"),
        sa.CheckConstraint("progress BETWEEN 0 AND 1", name="progress_is_share"),
        sa.Index(None, "state", "run_at", "id"),
    )
    op.create_table(
        "job_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("job_id", sa.String(36), sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("from_state", sa.String(10)),
        sa.Column("to_state", sa.String(10), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(120)),
        sa.Column("reason", sa.Text()),
    )
    op.create_table(
        "versions",
        sa.Column("model_id", sa.String(36), sa.ForeignKey("models.id"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("document_sha256", sa.String(64), nullable=False),
        sa.Column("parent_id", sa.String(36), sa.ForeignKey("versions.id"), index=True),
        sa.Column("data_set_id", sa.String(36), sa.ForeignKey("data_sets.id"), index=True),
        sa.Column("holdout_data_set_id", sa.String(36), sa.ForeignKey("data_sets.id"), index=True),
        sa.Column("job_id", sa.String(36), sa.ForeignKey("jobs.id"), unique=True),
        sa.Column("preset", sa.String(40), nullable=False),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("trace", sa.JSON(none_as_null=True)),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("archived", sa.DateTime(timezone=True)),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.CheckConstraint("number >= 1", name="number_from_one"),
        sa.UniqueConstraint("model_id", "number"),
    )
    op.create_table(
        "alias_events",
        sa.Column("model_id", sa.String(36), sa.ForeignKey("models.id"), primary_key=True),
        sa.Column("alias", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("version_id", sa.String(36), sa.ForeignKey("versions.id"), nullable=False, index=True),
        sa.Column("event", sa.String(10), nullable=False),
        sa.Column("before", sa.Integer()),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("key_id", sa.String(36)),
        sa.CheckConstraint("before < number", name="before_is_earlier"),
        sa.CheckConstraint("number >= 1", name="number_from_one"),
    )
    op.create_table(
        "decisions",
        sa.Column("version_id", sa.String(36), sa.ForeignKey("versions.id"), nullable=False),
        sa.Column("document_sha256", sa.String(64), nullable=False),
        sa.Column("alias", sa.String(64)),
        sa.Column("key_id", sa.String(36)),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False, index=True),
        sa.Column("n_rows", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.JSON(none_as_null=True)),
        sa.Column("missing", sa.String(20), nullable=False),
        sa.Column("answers", sa.JSON(none_as_null=True)),
        sa.Column("nodes", sa.JSON(none_as_null=True)),
        sa.Column("packed", sa.LargeBinary()),
        sa.Column("label", sa.Text()),
        sa.Column("leaf", sa.Integer()),
        sa.Column("subject", sa.String(200)),
        sa.Column("milliseconds", sa.Double(), nullable=False),
        sa.Column("job_id", sa.String(36), sa.ForeignKey("jobs.id")),
        sa.Column("first_row", sa.BigInteger()),
        sa.Column("operating_point", sa.JSON(none_as_null=True)),
        sa.Column("masked", sa.JSON(none_as_null=True)),
        sa.Column("erased", sa.DateTime(timezone=True)),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.CheckConstraint("(job_id IS NULL) = (first_row IS NULL)", name="job_has_first_row"),
        sa.CheckConstraint("(packed IS NULL) = (answers IS NOT NULL)", name="packed_or_row_by_row"),
        sa.CheckConstraint("n_rows >= 1", name="n_rows_positive"),
        sa.Index(None, "job_id", "first_row", unique=True),
        sa.Index(None, "subject", "id"),
        sa.Index(None, "version_id", "id"),
    )
    op.create_table(
        "outcomes",
        sa.Column("record_id", sa.String(36), primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column(
            "version_id", sa.String(36), sa.ForeignKey("versions.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("label", sa.Text()),
        sa.Column("answered_label", sa.Text()),
        sa.Column("value", sa.Double()),
        sa.Column("answered_value", sa.Double()),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("key_id", sa.String(36)),
        sa.CheckConstraint("(label IS NULL) = (answered_label IS NULL)", name="label_answered"),
        sa.CheckConstraint("(label IS NULL) = (value IS NOT NULL)", name="label_or_value"),
        sa.CheckConstraint("(value IS NULL) = (answered_value IS NULL)", name="value_answered"),
    )


def downgrade() -> None:
    for table in (
        "outcomes",
        "decisions",
        "alias_events",
        "versions",
        "job_events",
        "jobs",
        "data_set_chunks",
        "models",
        "keys",
        "idempotent_requests",
        "data_sets",
    ):
        op.drop_table(table)
