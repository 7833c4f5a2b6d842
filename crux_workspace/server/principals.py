"""Who calls: what a token is allowed, as a workspace that has nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crux_workspace.api.facade import Workspace
from crux_workspace.api.inside import binding_of, router_of
from crux_workspace.api.narrowing import narrowed, unbound
from crux_workspace.errors import ErrorCode
from crux_workspace.model.labels import check_label
from crux_workspace.mounts.routing import Router
from crux_workspace.server.problems import Refusal
from crux_workspace.server.tokens import UNNAMED, Token, Tokens

__all__ = ["Principal", "Principals"]


@dataclass(frozen=True, slots=True, eq=False)
class Principal:
    """A caller, with the workspace as far as it may see it."""

    name: str | None
    """Name of its token; None for whoever reaches a service without tokens."""
    writes: bool
    workspace: Workspace
    """Bound to no namespace."""
    default: str | None
    """The namespace of requests that name none."""
    namespaces: frozenset[str] | None
    """None is every one."""
    prefixes: tuple[str, ...]
    partial: bool
    """It does not see all mounts."""
    approves: bool
    """It may see and answer what waits for a person."""
    actor: str | None
    """Who its commits say made them, whatever the client says."""
    default_actor: str | None
    """Who they say otherwise, where the client names nobody."""

    @property
    def router(self) -> Router:
        """Its mounts."""
        return router_of(self.workspace)

    @property
    def limited(self) -> bool:
        """Whether there is anything that it may not see."""
        return self.partial or self.namespaces is not None

    def may_use(self, namespace: str) -> bool:
        """Tell whether a namespace is its own."""
        return (
            self.namespaces is None
            or namespace in self.namespaces
            or any(namespace.startswith(prefix) for prefix in self.prefixes)
        )

    def namespace(self, given: str | None) -> str:
        """Return the namespace of a request.

        Raises:
            Refusal: It names none where it has to, or one that is not its own.
        """
        name = self.default if given is None else given
        if name is None:
            raise Refusal(
                400,
                "The request names no namespace, and the service has none of its own.",
                hint="Add the parameter namespace=.",
                details={"option": "namespace"},
            )
        if not self.may_use(name):
            raise Refusal(
                403,
                "The token may not use this namespace.",
                code=ErrorCode.PERMISSION_DENIED,
                details={"option": "namespace"},
            )
        return name

    def acting(self, claimed: str | None) -> str | None:
        """Return who the commits of a request say made them."""
        if self.actor is not None:
            return self.actor
        if claimed is not None:
            return check_label("actor", claimed)
        return self.default_actor

    def key(self, given: str | None) -> str | None:
        """Return an idempotency key as the store keeps it: those of two tokens never meet."""
        if given is None or self.name is None:
            return given
        return f"{self.name}:{given}"

    def view(self, namespace: str, claimed: str | None) -> Workspace:
        """Return the workspace of one request."""
        actor = self.acting(claimed)
        bound = self.workspace.for_namespace(namespace)
        return bound if actor is None else bound.acting_as(actor)

    def rights(self) -> dict[str, object]:
        """Return what it may do, as plain data."""
        return {
            "workspace": self.workspace.id,
            "name": self.name,
            "namespace": self.default,
            "namespaces": None if self.namespaces is None else sorted(self.namespaces),
            "namespace_prefixes": list(self.prefixes),
            "mounts": [
                {
                    "path": mount.path,
                    "access": mount.access if self.writes else "read",
                    "description": mount.description,
                }
                for mount in self.workspace.mounts
            ],
            "write": self.writes,
            "partial": self.partial,
            "approvals": self.approves,
        }


class Principals:
    """Everybody who may call, by token."""

    def __init__(self, workspace: Workspace, tokens: Iterable[Token], *, write: bool) -> None:
        self._root = unbound(workspace)
        binding = binding_of(workspace)
        self._bound, self._default, self._actor = (
            binding.namespace,
            binding.default,
            binding.actor,
        )
        self._tokens = Tokens(tokens)
        self._parts: list[Workspace] = []
        self._by_name = {token.name: self._of(token) for token in self._tokens}
        own = None if self._bound is None else frozenset({self._bound})
        self._anybody = (
            None if len(self._tokens) else self._make(None, own, self._root, writes=write)
        )

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return self._anybody is not None

    def find(self, secret: str | None) -> Principal | None:
        """Return who sent a token, or nothing, where nothing is needed."""
        if secret is None or self._anybody is not None:
            return self._anybody
        token = self._tokens.find(secret)
        return None if token is None else self._by_name[token.name]

    def _of(self, token: Token) -> Principal:
        workspace = self._root
        if token.mounts is not None:
            workspace = narrowed(self._root, token.mounts)
            self._parts.append(workspace)
        allowed: frozenset[str] | None = frozenset(token.namespaces or ())
        if self._bound is not None:
            allowed = frozenset({self._bound})
        elif token.all_namespaces:
            allowed = None
        elif token.namespaces is None and not token.namespace_prefixes:
            allowed = frozenset(() if self._default is None else (self._default,))
        return self._make(token, allowed, workspace, writes=token.writes)

    def _make(
        self,
        token: Token | None,
        allowed: frozenset[str] | None,
        workspace: Workspace,
        *,
        writes: bool,
    ) -> Principal:
        prefixes = () if token is None or self._bound is not None else token.namespace_prefixes
        default = self._default
        if allowed is not None and default not in allowed:
            default = next(iter(allowed)) if len(allowed) == 1 else None
        return Principal(
            name=None if token is None else token.name,
            writes=writes,
            workspace=workspace,
            default=default,
            namespaces=allowed,
            prefixes=prefixes,
            partial={m.path for m in workspace.mounts} != {m.path for m in self._root.mounts},
            approves=writes if token is None else token.approvals,
            actor=None if token is None else token.actor,
            default_actor=self._actor if token is None or token.name == UNNAMED else token.name,
        )

    async def aclose(self) -> None:
        """End the watches of the parts."""
        for part in self._parts:
            await part.aclose()
