"""All tables

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
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.Column("n_attributes", sa.Integer(), nullable=False),
        sa.Column("declared", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("task", sa.String(length=20), nullable=True),
        sa.Column("notices", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column("files", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint("n_rows >= 0", name=op.f("ck_data_sets_n_rows_not_negative")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_sets")),
    )
    op.create_table(
        "idempotent_requests",
        sa.Column("owner", sa.String(length=36), nullable=False),
        sa.Column("key_sha256", sa.String(length=64), nullable=False),
        sa.Column("token", sa.String(length=36), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("request_sha256", sa.String(length=64), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint(
            "(status IS NULL) = (claimed_until IS NOT NULL)", name=op.f("ck_idempotent_requests_running_or_answered")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotent_requests")),
        sa.UniqueConstraint("owner", "key_sha256", name=op.f("uq_idempotent_requests_owner_key_sha256")),
    )
    op.create_index(op.f("ix_idempotent_requests_expires"), "idempotent_requests", ["expires"], unique=False)
    op.create_table(
        "keys",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("models", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
    )
    op.create_table(
        "models",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("last_number", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("tags", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("mask", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("retention_days", sa.Integer(), nullable=True),
        sa.Column("operating_point", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint("last_number >= 0", name=op.f("ck_models_last_number_not_negative")),
        sa.CheckConstraint("retention_days >= 1", name=op.f("ck_models_retention_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("name", name=op.f("uq_models_name")),
    )
    op.create_table(
        "data_set_chunks",
        sa.Column("data_set_id", sa.String(length=36), nullable=False),
        sa.Column("first_row", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("n_rows", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("first_row >= 0", name=op.f("ck_data_set_chunks_first_row_not_negative")),
        sa.CheckConstraint("n_rows > 0", name=op.f("ck_data_set_chunks_n_rows_positive")),
        sa.ForeignKeyConstraint(
            ["data_set_id"], ["data_sets.id"], name=op.f("fk_data_set_chunks_data_set_id_data_sets"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("data_set_id", "first_row", name=op.f("pk_data_set_chunks")),
    )
    op.create_table(
        "jobs",
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=True),
        sa.Column("key_id", sa.String(length=36), nullable=True),
        sa.Column("data_set_id", sa.String(length=36), nullable=True),
        sa.Column("holdout_data_set_id", sa.String(length=36), nullable=True),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("run_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_token", sa.String(length=36), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=120), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("phase", sa.String(length=60), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name=op.f("ck_jobs_running_has_lease")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')", name=op.f("ck_jobs_state")
        ),
        sa.CheckConstraint("(lease_token IS NULL) = (lease_expires_at IS NULL)", name=op.f("ck_jobs_lease_has_end")),
        sa.CheckConstraint("attempt BETWEEN 0 AND max_attempts", name=op.f("ck_jobs_attempts_capped")),
        sa.CheckConstraint("progress BETWEEN 0 AND 1", name=op.f("ck_jobs_progress_is_share")),
        sa.ForeignKeyConstraint(
            ["data_set_id"], ["data_sets.id"], name=op.f("fk_jobs_data_set_id_data_sets"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["holdout_data_set_id"],
            ["data_sets.id"],
            name=op.f("fk_jobs_holdout_data_set_id_data_sets"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_data_set_id"), "jobs", ["data_set_id"], unique=False)
    op.create_index(op.f("ix_jobs_holdout_data_set_id"), "jobs", ["holdout_data_set_id"], unique=False)
    op.create_index(op.f("ix_jobs_model"), "jobs", ["model"], unique=False)
    op.create_index(op.f("ix_jobs_state_run_at_id"), "jobs", ["state", "run_at", "id"], unique=False)
    op.create_table(
        "job_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.String(length=20), nullable=False),
        sa.Column("from_state", sa.String(length=10), nullable=True),
        sa.Column("to_state", sa.String(length=10), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=120), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_events_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_events")),
    )
    op.create_index(op.f("ix_job_events_job_id"), "job_events", ["job_id"], unique=False)
    op.create_table(
        "versions",
        sa.Column("model_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("document_sha256", sa.String(length=64), nullable=False),
        sa.Column("parent_id", sa.String(length=36), nullable=True),
        sa.Column("data_set_id", sa.String(length=36), nullable=True),
        sa.Column("holdout_data_set_id", sa.String(length=36), nullable=True),
        sa.Column("job_id", sa.String(length=36), nullable=True),
        sa.Column("preset", sa.String(length=40), nullable=False),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("trace", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("archived", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint("number >= 1", name=op.f("ck_versions_number_from_one")),
        sa.ForeignKeyConstraint(["data_set_id"], ["data_sets.id"], name=op.f("fk_versions_data_set_id_data_sets")),
        sa.ForeignKeyConstraint(
            ["holdout_data_set_id"], ["data_sets.id"], name=op.f("fk_versions_holdout_data_set_id_data_sets")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_versions_job_id_jobs")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_versions_model_id_models")),
        sa.ForeignKeyConstraint(["parent_id"], ["versions.id"], name=op.f("fk_versions_parent_id_versions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
        sa.UniqueConstraint("job_id", name=op.f("uq_versions_job_id")),
        sa.UniqueConstraint("model_id", "number", name=op.f("uq_versions_model_id_number")),
    )
    op.create_index(op.f("ix_versions_data_set_id"), "versions", ["data_set_id"], unique=False)
    op.create_index(op.f("ix_versions_holdout_data_set_id"), "versions", ["holdout_data_set_id"], unique=False)
    op.create_index(op.f("ix_versions_parent_id"), "versions", ["parent_id"], unique=False)
    op.create_table(
        "alias_events",
        sa.Column("model_id", sa.String(length=36), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version_id", sa.String(length=36), nullable=False),
        sa.Column("event", sa.String(length=10), nullable=False),
        sa.Column("before", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("key_id", sa.String(length=36), nullable=True),
        sa.CheckConstraint("before < number", name=op.f("ck_alias_events_before_is_earlier")),
        sa.CheckConstraint("number >= 1", name=op.f("ck_alias_events_number_from_one")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_alias_events_model_id_models")),
        sa.ForeignKeyConstraint(["version_id"], ["versions.id"], name=op.f("fk_alias_events_version_id_versions")),
        sa.PrimaryKeyConstraint("model_id", "alias", "number", name=op.f("pk_alias_events")),
    )
    op.create_index(op.f("ix_alias_events_version_id"), "alias_events", ["version_id"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("version_id", sa.String(length=36), nullable=False),
        sa.Column("document_sha256", sa.String(length=64), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=True),
        sa.Column("key_id", sa.String(length=36), nullable=True),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("n_rows", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("missing", sa.String(length=20), nullable=False),
        sa.Column("answers", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("nodes", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("packed", sa.LargeBinary(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("leaf", sa.Integer(), nullable=True),
        sa.Column("subject", sa.String(length=200), nullable=True),
        sa.Column("milliseconds", sa.Double(), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=True),
        sa.Column("first_row", sa.BigInteger(), nullable=True),
        sa.Column("operating_point", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("masked", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("erased", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint("(job_id IS NULL) = (first_row IS NULL)", name=op.f("ck_decisions_job_has_first_row")),
        sa.CheckConstraint("(packed IS NULL) = (answers IS NOT NULL)", name=op.f("ck_decisions_packed_or_row_by_row")),
        sa.CheckConstraint("n_rows >= 1", name=op.f("ck_decisions_n_rows_positive")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_decisions_job_id_jobs")),
        sa.ForeignKeyConstraint(["version_id"], ["versions.id"], name=op.f("fk_decisions_version_id_versions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index(op.f("ix_decisions_job_id_first_row"), "decisions", ["job_id", "first_row"], unique=True)
    op.create_index(op.f("ix_decisions_subject_id"), "decisions", ["subject", "id"], unique=False)
    op.create_index(op.f("ix_decisions_time"), "decisions", ["time"], unique=False)
    op.create_index(op.f("ix_decisions_version_id_id"), "decisions", ["version_id", "id"], unique=False)
    op.create_table(
        "outcomes",
        sa.Column("record_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version_id", sa.String(length=36), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("answered_label", sa.Text(), nullable=True),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("answered_value", sa.Double(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("key_id", sa.String(length=36), nullable=True),
        sa.CheckConstraint("(label IS NULL) = (answered_label IS NULL)", name=op.f("ck_outcomes_label_answered")),
        sa.CheckConstraint("(label IS NULL) = (value IS NOT NULL)", name=op.f("ck_outcomes_label_or_value")),
        sa.CheckConstraint("(value IS NULL) = (answered_value IS NULL)", name=op.f("ck_outcomes_value_answered")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name=op.f("fk_outcomes_version_id_versions"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_id", "position", name=op.f("pk_outcomes")),
    )
    op.create_index(op.f("ix_outcomes_version_id"), "outcomes", ["version_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_outcomes_version_id"), table_name="outcomes")
    op.drop_table("outcomes")
    op.drop_index(op.f("ix_decisions_version_id_id"), table_name="decisions")
    op.drop_index(op.f("ix_decisions_time"), table_name="decisions")
    op.drop_index(op.f("ix_decisions_subject_id"), table_name="decisions")
    op.drop_index(op.f("ix_decisions_job_id_first_row"), table_name="decisions")
    op.drop_table("decisions")
    op.drop_index(op.f("ix_alias_events_version_id"), table_name="alias_events")
    op.drop_table("alias_events")
    op.drop_index(op.f("ix_versions_parent_id"), table_name="versions")
    op.drop_index(op.f("ix_versions_holdout_data_set_id"), table_name="versions")
    op.drop_index(op.f("ix_versions_data_set_id"), table_name="versions")
    op.drop_table("versions")
    op.drop_index(op.f("ix_job_events_job_id"), table_name="job_events")
    op.drop_table("job_events")
    op.drop_index(op.f("ix_jobs_state_run_at_id"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_model"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_holdout_data_set_id"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_data_set_id"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_table("data_set_chunks")
    op.drop_table("models")
    op.drop_table("keys")
    op.drop_index(op.f("ix_idempotent_requests_expires"), table_name="idempotent_requests")
    op.drop_table("idempotent_requests")
    op.drop_table("data_sets")
