"""The first tables: data sets, models, versions, jobs, decisions

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
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.Column("n_attributes", sa.Integer(), nullable=False),
        sa.Column("declared", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("task", sa.String(length=20), nullable=True),
        sa.Column("notices", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("n_rows >= 0", name=op.f("ck_data_sets_n_rows_not_negative")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_sets")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("last_number", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("last_number >= 0", name=op.f("ck_models_last_number_not_negative")),
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
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=True),
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
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jobs_data_set_id"), ["data_set_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_holdout_data_set_id"), ["holdout_data_set_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_model"), ["model"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_state_run_at_id"), ["state", "run_at", "id"], unique=False)

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
    with op.batch_alter_table("job_events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_job_events_job_id"), ["job_id"], unique=False)

    op.create_table(
        "versions",
        sa.Column("id", sa.String(length=36), nullable=False),
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
    with op.batch_alter_table("versions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_versions_data_set_id"), ["data_set_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_versions_holdout_data_set_id"), ["holdout_data_set_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_versions_parent_id"), ["parent_id"], unique=False)

    op.create_table(
        "decisions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("version_id", sa.String(length=36), nullable=False),
        sa.Column("document_sha256", sa.String(length=64), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=True),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("n_rows", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.JSON(), nullable=False),
        sa.Column("missing", sa.String(length=20), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("nodes", sa.JSON(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("leaf", sa.Integer(), nullable=True),
        sa.Column("subject", sa.String(length=200), nullable=True),
        sa.Column("milliseconds", sa.Double(), nullable=False),
        sa.CheckConstraint("n_rows >= 1", name=op.f("ck_decisions_n_rows_positive")),
        sa.ForeignKeyConstraint(["version_id"], ["versions.id"], name=op.f("fk_decisions_version_id_versions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_decisions_subject_id"), ["subject", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_decisions_time"), ["time"], unique=False)
        batch_op.create_index(batch_op.f("ix_decisions_version_id_id"), ["version_id", "id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_decisions_version_id_id"))
        batch_op.drop_index(batch_op.f("ix_decisions_time"))
        batch_op.drop_index(batch_op.f("ix_decisions_subject_id"))

    op.drop_table("decisions")
    with op.batch_alter_table("versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_versions_parent_id"))
        batch_op.drop_index(batch_op.f("ix_versions_holdout_data_set_id"))
        batch_op.drop_index(batch_op.f("ix_versions_data_set_id"))

    op.drop_table("versions")
    with op.batch_alter_table("job_events", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_job_events_job_id"))

    op.drop_table("job_events")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_state_run_at_id"))
        batch_op.drop_index(batch_op.f("ix_jobs_model"))
        batch_op.drop_index(batch_op.f("ix_jobs_holdout_data_set_id"))
        batch_op.drop_index(batch_op.f("ix_jobs_data_set_id"))

    op.drop_table("jobs")
    op.drop_table("data_set_chunks")
    op.drop_table("models")
    op.drop_table("data_sets")
