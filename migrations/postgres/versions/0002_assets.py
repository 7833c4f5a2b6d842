"""Assets, in pieces."""

from __future__ import annotations

from storage_adapters.sql.postgres.upgrading import run

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TABLES = """
create table {schema}.assets (
    id bigint generated always as identity primary key,
    ref text collate "C" not null unique,
    size bigint not null,
    sha256 text collate "C" not null,
    created_at bigint not null,
    ready boolean not null
);
create index assets_unready on {schema}.assets (id) where not ready;
create table {schema}.pieces (
    asset bigint not null,
    n integer not null,
    data bytea not null,
    primary key (asset, n)
);
alter table {schema}.pieces alter column data set storage external
"""


def upgrade() -> None:
    """Apply the step."""
    run(_TABLES)
