"""Requests that are safe to send twice, and what they were answered

Revision: v0005
"""

import sqlalchemy as sa
from alembic import op

revision = "v0005"
down_revision = "v0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
        sa.Column("sealed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.CheckConstraint(
            "(status IS NULL) = (claimed_until IS NOT NULL)",
            name=op.f("ck_idempotent_requests_running_or_answered"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotent_requests")),
        sa.UniqueConstraint("owner", "key_sha256", name=op.f("uq_idempotent_requests_owner_key_sha256")),
    )
    with op.batch_alter_table("idempotent_requests", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotent_requests_expires"), ["expires"], unique=False)


def downgrade() -> None:
    op.drop_table("idempotent_requests")
