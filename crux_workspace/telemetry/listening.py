"""Finds out who listens, at next to no cost while nobody does.

The global providers can be set at any time, so every operation looks again until it has found one; from then on it is kept, for a
global provider is set only once. OpenTelemetry is not imported for the look.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar

from crux_workspace.telemetry.guard import note_failure

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["MEASURES", "SCOPE", "TRACES", "MeterSource", "TracerSource"]

SCOPE = "crux_workspace"
"""Name of our instrumentation scope."""

TRACES = "opentelemetry.trace"
MEASURES = "opentelemetry.metrics._internal"
"""Modules that hold the global providers; as long as neither is imported, there are none."""

_API_MODULES = frozenset({TRACES, "opentelemetry.metrics", MEASURES})
_UNKNOWN = object()

P = TypeVar("P")
T = TypeVar("T")


def _is_stand_in(provider: object) -> bool:
    """Tell a provider of the API package itself (no-op, or proxy for one to come) from one that listens."""
    return type(provider).__module__ in _API_MODULES


def _is_proxy(provider: object) -> bool:
    return _is_stand_in(provider) and "Proxy" in type(provider).__name__


class _Source(Generic[P, T]):
    """One signal: the given provider, else the global one, as soon as it is more than a stand-in."""

    __slots__ = ("_asked", "_found", "_given", "_is_off")

    _module: str
    """Module of the API with the public getter."""
    _getter: str
    _home: str
    """Module that holds the variable behind the getter."""
    _variable: str

    def __init__(self, given: P | None) -> None:
        self._given = None if _is_proxy(given) else given
        self._is_off = self._given is not None and _is_stand_in(self._given)
        self._found: T | None = None
        self._asked = False

    @abstractmethod
    def _open(self, provider: P) -> T | None:
        """Return what the provider gives for our scope, None when it records nothing."""

    def find(self) -> T | None:
        """Return the tracer or meter, None while nobody listens; never raises."""
        if self._found is not None or self._is_off:
            return self._found
        home = sys.modules.get(self._home)
        if home is None and self._given is None:  # nobody has imported the API
            return None
        # The public getter reads the environment each time while nothing is set (0.6 us). Once it has been asked, a glance at the
        # variable behind it says whether to ask again; should a later release move that variable, we ask every time.
        if self._asked and getattr(home, self._variable, _UNKNOWN) is None:
            return None
        try:
            provider = self._given if self._given is not None else self._global_provider()
            if provider is not None:
                self._found = self._open(provider)
                self._is_off = self._found is None
        except Exception as error:
            note_failure(self._getter, error)
            self._is_off = True
        return self._found

    @property
    def silent_home(self) -> tuple[ModuleType, str] | None:
        """Where the global provider will appear when there is none yet and it was asked for before; None in every other case."""
        home = sys.modules.get(self._home)
        if self._given is not None or not self._asked or home is None:
            return None
        return (home, self._variable) if getattr(home, self._variable, _UNKNOWN) is None else None

    def _global_provider(self) -> P | None:
        getter = getattr(sys.modules.get(self._module), self._getter, None)
        if getter is None:  # nobody has imported it, or another thread is still at it
            return None
        provider: P = getter()
        self._asked = True
        return None if _is_stand_in(provider) else provider


class TracerSource(_Source["TracerProvider", "Tracer"]):
    """Gives the tracer as soon as somebody listens to spans."""

    __slots__ = ()

    _module = _home = TRACES
    _getter = "get_tracer_provider"
    _variable = "_TRACER_PROVIDER"

    def _open(self, provider: TracerProvider) -> Tracer | None:
        from opentelemetry.trace import NoOpTracer

        tracer = provider.get_tracer(SCOPE)
        return None if isinstance(tracer, NoOpTracer) else tracer


class MeterSource(_Source["MeterProvider", "Meter"]):
    """Gives the meter as soon as somebody listens to metrics."""

    __slots__ = ()

    _module = "opentelemetry.metrics"
    _getter = "get_meter_provider"
    _home = MEASURES
    _variable = "_METER_PROVIDER"

    def _open(self, provider: MeterProvider) -> Meter | None:
        from opentelemetry.metrics import NoOpMeter

        meter = provider.get_meter(SCOPE)
        return None if isinstance(meter, NoOpMeter) else meter
