"""Names that point at versions, and every change of them

Revision: v0003
"""

import sqlalchemy as sa
from alembic import op

revision = "v0003"
down_revision = "v0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
        sa.CheckConstraint("number >= 1", name=op.f("ck_alias_events_number_from_one")),
        sa.CheckConstraint("before < number", name=op.f("ck_alias_events_before_is_earlier")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_alias_events_model_id_models")),
        sa.ForeignKeyConstraint(["version_id"], ["versions.id"], name=op.f("fk_alias_events_version_id_versions")),
        sa.PrimaryKeyConstraint("model_id", "alias", "number", name=op.f("pk_alias_events")),
    )
    with op.batch_alter_table("alias_events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_alias_events_version_id"), ["version_id"], unique=False)


def downgrade() -> None:
    op.drop_table("alias_events")
