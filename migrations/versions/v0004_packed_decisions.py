"""Decisions of many rows packed column by column

Revision: v0004
"""

import sqlalchemy as sa
from alembic import op

revision = "v0004"
down_revision = "v0003"
branch_labels = None
depends_on = None

ROW_BY_ROW = ("inputs", "answers", "nodes")


def upgrade() -> None:
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("packed", sa.LargeBinary(), nullable=True))
        for name in ROW_BY_ROW:
            batch_op.alter_column(name, existing_type=sa.JSON(none_as_null=True), nullable=True)
        batch_op.create_check_constraint(
            op.f("ck_decisions_packed_or_row_by_row"), "(packed IS NULL) = (answers IS NOT NULL)"
        )


def downgrade() -> None:
    op.execute("DELETE FROM decisions WHERE packed IS NOT NULL")  # the tables before know no place for them
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.drop_constraint(op.f("ck_decisions_packed_or_row_by_row"), type_="check")
        for name in ROW_BY_ROW:
            batch_op.alter_column(name, existing_type=sa.JSON(), nullable=False)
        batch_op.drop_column("packed")
