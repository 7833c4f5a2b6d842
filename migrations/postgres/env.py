"""Alembic's environment for PostgreSQL: migrates one schema over the connection that the library hands over."""

from __future__ import annotations

from alembic import context

from storage_adapters.sql.postgres.schema import metadata

_given = context.config.attributes

context.configure(
    connection=_given["connection"],
    target_metadata=metadata(_given["schema"]),
    version_table_schema=_given["schema"],
    transactional_ddl=False,
)
context.run_migrations()
