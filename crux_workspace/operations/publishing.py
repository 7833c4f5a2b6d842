"""Artifacts: files that are finalized, and the version of them that stays pinned."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from urllib.parse import unquote

from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset, Draft, FileDelta
from crux_workspace.engine.codec import ArtifactRecord, AssetCount, Op, decode
from crux_workspace.engine.committer import Done, Finished
from crux_workspace.engine.content import asset_prefix, stored
from crux_workspace.engine.entry import artifact_result, inline_uri
from crux_workspace.engine.gathering import gather
from crux_workspace.engine.keys import artifact_key, asset_key
from crux_workspace.engine.parts import open_asset
from crux_workspace.engine.reads import TreeReads
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import InvalidInputError, PathNotFoundError, VersionNotFoundError
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.attributes import check_attributes
from crux_workspace.model.files import Status, WorkspaceFile
from crux_workspace.model.globs import compile_glob, has_glob
from crux_workspace.model.options import ordinal, whole_number
from crux_workspace.model.paths import is_at_or_below, normalise
from crux_workspace.operations import sourced
from crux_workspace.operations.origins import check_restored, may_show
from crux_workspace.operations.reading import (
    open_version,
    version_missing,
)
from crux_workspace.operations.space import Options, Space, expected_entry
from crux_workspace.storage.records import Reader

__all__ = ["artifacts", "finalize", "resolve", "withdraw"]

_INLINE = re.compile(r"workspace-inline://([^/]+)/([^/]+)(/.+)@v(\d{1,15})").fullmatch
_ASSET_NAME = re.compile(r"[0-9a-f]{32}\Z").search


async def finalize(
    space: Space, path: str, *, kind: str | None, version: int | None, options: Options
) -> Artifact:
    """Pin a version as the published one."""
    sourced.refuse(space, path, "finalize")
    check_attributes(kind=kind)
    ordinal("version", version)
    ports = space.ports
    produced = ports.provenance()

    async def plan(tree: LiveTree) -> Changeset | Finished[Artifact]:
        await tree.look(path, ways=False, extra=[artifact_key(path)])
        entry = await expected_entry(tree, path, options)
        pinned = entry.version if version is None else version
        if version is not None:
            await check_restored(space.router, tree, path, entry.file_id, version)
        if pinned != entry.version:
            await _check_kept(tree, path, entry.file_id, pinned, entry.version)
        draft = Draft.like(entry, status="final", pinned=pinned)
        draft.artifact_kind = kind if kind is not None else draft.artifact_kind
        record = tree.record(artifact_key(path))
        if draft == Draft.like(entry) and record is not None:
            found = decode(ArtifactRecord, record.value)
            return Finished(_result(space, path, found, record.at))
        draft.produced_by = produced or draft.produced_by
        return Changeset([FileDelta(file_id=entry.file_id, before=entry, after=draft)])

    def remember(built: Built, op: Op) -> None:
        op.shape, op.path, op.artifact = "artifact", path, built.artifacts[path]

    async def recall(_: Reader, op: Op, __: int, at: int) -> Artifact:
        assert op.artifact is not None
        return _result(space, op.path or path, op.artifact, at)

    def finish(done: Done) -> Artifact:
        return _result(space, path, done.built.artifacts[path], done.at)

    return await space.commit(
        "finalize",
        (path,),
        plan,
        finish,
        options=options,
        request=[path, kind, version],
        remember=remember,
        recall=recall,
    )


def _result(space: Space, path: str, record: ArtifactRecord, at: int) -> Artifact:
    return artifact_result(path, record, at, space.ports.workspace_id, space.ports.namespace)


async def _check_kept(tree: LiveTree, path: str, file_id: str, version: int, last: int) -> None:
    """Only a version with content can be pinned."""
    state = await tree.version_state(file_id, version) if version <= last else None
    if state is None:
        raise version_missing(path, version, last)
    if state.is_tombstone:
        raise VersionNotFoundError(
            f"Version {version} of {path} is its deletion and cannot be published.",
            details={"path": path, "version": version},
        )


async def withdraw(space: Space, path: str, *, options: Options) -> WorkspaceFile:
    """Unpublish: the file becomes a draft and nothing is pinned; no change to a file that is not pinned."""
    sourced.refuse(space, path, "withdraw")

    async def plan(tree: LiveTree) -> Changeset | Finished[WorkspaceFile]:
        await tree.look(path, ways=False)
        entry = await expected_entry(tree, path, options)
        if entry.head.pinned is None:
            return Finished(space.file(entry))
        draft = Draft.like(entry, status="draft", pinned=None)
        return Changeset([FileDelta(file_id=entry.file_id, before=entry, after=draft)])

    return await space.commit_file("withdraw", path, plan, options=options, request=[])


async def artifacts(
    space: Space,
    reads: TreeReads,
    *,
    status: Status | None,
    kind: str | None,
    path: str | None,
    directory: bool,
    limit: int | None,
    after: str | None,
) -> list[Artifact]:
    """List artifacts by path; a pinned one shows its pinned version. A `directory` is no artifact itself."""
    check_attributes(status=status, kind=kind)
    whole_number("limit", limit, least=0)
    base, within = _scope(path)
    space.router.browsable(base)
    found: list[Artifact] = []
    if limit == 0:
        return found
    async for where, record, at in _below(space, reads, base, after):
        if not space.router.is_local(where) or not within(where) or (directory and where == path):
            continue
        if (status is not None and record.status != status) or (
            kind is not None and record.kind != kind
        ):
            continue
        if space.router.is_part and not await may_show(space.router, reads, record):
            continue
        found.append(_result(space, where, record, at))
        if limit is not None and len(found) == limit:
            break
    return found


async def _below(
    space: Space, reads: TreeReads, base: str, after: str | None
) -> AsyncIterator[tuple[str, ArtifactRecord, int]]:
    for scope in space.router.scopes(base):
        async for found in reads.artifacts(scope, after=after):
            yield found


def _scope(path: str | None) -> tuple[str, Callable[[str], bool]]:
    """Return where to look, and what there counts."""
    if path is None:
        return "/", lambda _: True
    if not has_glob(path):
        return path, lambda _: True
    pattern = compile_glob(path)
    return pattern.base, lambda where: is_at_or_below(where, path) or pattern.matches(where)


async def resolve(space: Space, uri: str) -> bytes:
    """Open the bytes behind an artifact's URI, of this workspace and namespace only."""
    given: object = uri
    if not isinstance(given, str):
        raise InvalidInputError("uri must be a string.", details={"option": "uri"})
    if not uri.isascii():
        raise _foreign()
    inline = _INLINE(uri)
    if inline is not None:
        return await _resolve_inline(space, uri, inline)
    return await _resolve_asset(space, uri)


def _foreign() -> InvalidInputError:
    return InvalidInputError(
        "The URI does not belong to this workspace and namespace; "
        "open the workspace and namespace that it names.",
    )


async def _resolve_inline(space: Space, uri: str, inline: re.Match[str]) -> bytes:
    ports = space.ports
    path, version = unquote(inline[3]), int(inline[4])
    if inline_uri(ports.workspace_id, ports.namespace, path, version) != uri:
        raise _foreign()
    where = normalise(path)
    space.router.readable(where)
    found = await open_version(space, space.reads(), where, version)
    gather(found.path, found.of.size)
    return await stored(ports, found.path, found.of, found.body)


async def _resolve_asset(space: Space, uri: str) -> bytes:
    """An asset is this namespace's own when a reference count under its ref says so, and names this URI."""
    ports = space.ports
    refs = _refs_in(uri, asset_prefix(ports.workspace_id, ports.namespace))
    records = await ports.reader.get_many([asset_key(ref) for ref in refs], bodies=False)
    for ref, record in zip(refs, records, strict=True):
        count = None if record is None else decode(AssetCount, record.value)
        if count is not None and count.uri == uri:
            gather("The asset", count.size)
            return await open_asset(ports, ref, sha256=count.sha256)
    async for _, artifact, _ in space.reads().artifacts("/", after=None):
        if artifact.uri == uri and artifact.asset is not None:
            gather("The asset", artifact.size)
            return await open_asset(ports, artifact.asset, sha256=artifact.sha256)
    if any(ref in unquote(uri) or ref in uri for ref in refs):
        raise PathNotFoundError("What the URI named is not kept any more.")
    raise _foreign()


def _refs_in(uri: str, prefix: str) -> list[str]:
    """Return the refs a URI may be about: the namespace's prefix and the 32 hex digits at its end, or what begins with the prefix."""
    name = _ASSET_NAME(uri)
    refs = [] if name is None else [prefix + name[0]]
    start = uri.rfind(prefix)
    if start >= 0 and uri[start:] not in refs:
        refs.append(uri[start:])
    return refs
