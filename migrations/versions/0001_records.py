"""Partitions, records and bodies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the step."""
    op.create_table(
        "partitions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "records",
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("at", sa.Integer, nullable=False),
        sa.Column("value", sa.BLOB, nullable=False),
        sa.Column("body_id", sa.Integer),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "bodies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("data", sa.BLOB, nullable=False),
    )


def downgrade() -> None:
    """Take the step back."""
    for table in ("bodies", "records", "partitions"):
        op.drop_table(table)
