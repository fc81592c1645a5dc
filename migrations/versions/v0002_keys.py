"""API keys, and which of them asked for a job or a decision

Revision: v0002
"""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("models", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
    )
    op.add_column("jobs", sa.Column("key_id", sa.String(length=36), nullable=True))
    op.add_column("decisions", sa.Column("key_id", sa.String(length=36), nullable=True))


def downgrade() -> None:
    op.drop_column("decisions", "key_id")
    op.drop_column("jobs", "key_id")
    op.drop_table("keys")
