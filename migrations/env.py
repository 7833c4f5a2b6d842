"""Alembic's environment: migrates the connection that the library hands over, or the URL given on the command line."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine

from storage_adapters.sql.schema import metadata


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transactional_ddl=False,
        render_as_batch=True,
    )
    context.run_migrations()


def _main() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        _run(given)
        return
    url = context.get_x_argument(as_dictionary=True).get("url", "sqlite://")
    with create_engine(url).begin() as connection:
        _run(connection)


_main()
