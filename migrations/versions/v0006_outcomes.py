"""Decisions made by jobs, masked and erased; what turned out to be true; what is said of a model; archived versions

Revision: v0006
"""

import sqlalchemy as sa
from alembic import op

revision = "v0006"
down_revision = "v0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("job_id", sa.String(length=36), nullable=True))
        batch_op.add_column(sa.Column("first_row", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("operating_point", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("masked", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("erased", sa.DateTime(timezone=True), nullable=True))
        batch_op.create_check_constraint(
            op.f("ck_decisions_job_has_first_row"), "(job_id IS NULL) = (first_row IS NULL)"
        )
        batch_op.create_foreign_key(op.f("fk_decisions_job_id_jobs"), "jobs", ["job_id"], ["id"])
        batch_op.create_index(batch_op.f("ix_decisions_job_id_first_row"), ["job_id", "first_row"], unique=True)
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.add_column(sa.Column("description", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("tags", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("mask", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("retention_days", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("operating_point", sa.JSON(none_as_null=True), nullable=True))
        batch_op.create_check_constraint(op.f("ck_models_retention_positive"), "retention_days >= 1")
    with op.batch_alter_table("versions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("archived", sa.DateTime(timezone=True), nullable=True))
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
        sa.CheckConstraint("(label IS NULL) = (value IS NOT NULL)", name=op.f("ck_outcomes_label_or_value")),
        sa.CheckConstraint("(label IS NULL) = (answered_label IS NULL)", name=op.f("ck_outcomes_label_answered")),
        sa.CheckConstraint("(value IS NULL) = (answered_value IS NULL)", name=op.f("ck_outcomes_value_answered")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name=op.f("fk_outcomes_version_id_versions"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("record_id", "position", name=op.f("pk_outcomes")),
    )
    with op.batch_alter_table("outcomes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outcomes_version_id"), ["version_id"], unique=False)


def downgrade() -> None:
    op.drop_table("outcomes")
    with op.batch_alter_table("versions", schema=None) as batch_op:
        batch_op.drop_column("archived")
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.drop_constraint(op.f("ck_models_retention_positive"), type_="check")
        for name in ("operating_point", "retention_days", "mask", "tags", "description"):
            batch_op.drop_column(name)
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_decisions_job_id_first_row"))
        batch_op.drop_constraint(op.f("fk_decisions_job_id_jobs"), type_="foreignkey")
        batch_op.drop_constraint(op.f("ck_decisions_job_has_first_row"), type_="check")
        for name in ("erased", "masked", "operating_point", "first_row", "job_id"):
            batch_op.drop_column(name)
