"""The four instruments: operation duration, conflicts, bytes, watch lag."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from crux_workspace.telemetry.attributes import Attributes, measure_attributes, whole
from crux_workspace.telemetry.guard import note_failure
from crux_workspace.telemetry.listening import MeterSource

if TYPE_CHECKING:
    from opentelemetry.metrics import (
        CallbackOptions,
        Counter,
        Histogram,
        Meter,
        MeterProvider,
        Observation,
    )

__all__ = ["CONFLICT_CODES", "WorkspaceMetrics"]

CONFLICT_CODES = ("VERSION_CONFLICT", "TRANSACTION_CONFLICT", "MERGE_CONFLICT")
"""Error codes that count as a conflict."""


DURATION_BOUNDS_MS = (
    *(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000),
)
"""Buckets of the operation duration: the SDK's own begin at 5 ms, where most operations are long over."""
LAG_BOUNDS_MS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000)
"""Buckets of the watch lag."""


_MOST_SPLITS = 4_096


class _Totals:
    """Sums by operation. They are added up here and told when somebody collects: a tenth of the cost of measuring each."""

    __slots__ = ("_lock", "_sums")

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._lock = Lock()

    def add(self, operation: str, amount: int) -> None:
        with self._lock:
            self._sums[operation] = self._sums.get(operation, 0) + amount

    def observe(self, options: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        del options
        with self._lock:
            sums = list(self._sums.items())
        return [Observation(amount, measure_attributes(operation)) for operation, amount in sums]


class _Instruments:
    """What all workspaces that share a meter measure with: it keeps one callback for a name."""

    __slots__ = ("bytes", "conflicts", "duration", "lag")

    def __init__(self, meter: Meter) -> None:
        self.duration: Histogram = meter.create_histogram(
            "crux.workspace.operation.duration",
            "ms",
            "How long an operation took",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS_MS,
        )
        self.conflicts: Counter = meter.create_counter(
            "crux.workspace.conflicts", "{conflict}", "Operations refused by a conflict"
        )
        self.bytes = _Totals()
        meter.create_observable_counter(
            "crux.workspace.bytes",
            [self.bytes.observe],
            "By",
            "Content that operations read or wrote",
        )
        self.lag: Histogram = meter.create_histogram(
            "crux.workspace.watch.lag",
            "ms",
            "From a commit to the delivery of its event",
            explicit_bucket_boundaries_advisory=LAG_BOUNDS_MS,
        )


_shared: WeakKeyDictionary[Meter, _Instruments] = WeakKeyDictionary()
_sharing = Lock()


def _instruments_of(meter: Meter) -> _Instruments:
    with _sharing:
        try:
            found = _shared.get(meter)
        except TypeError:  # nothing that can be looked up: it shares with nobody
            return _Instruments(meter)
        if found is None:
            found = _shared[meter] = _Instruments(meter)
        return found


class WorkspaceMetrics:
    """Measurements of one workspace; every call does nothing while nobody listens, and none ever raises."""

    __slots__ = ("_instruments", "_source", "_splits")

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._source = MeterSource(meter_provider)
        self._instruments: _Instruments | None = None
        self._splits: dict[tuple[str, str | None, str | None], Attributes] = {}

    @property
    def source(self) -> MeterSource:
        """Finds who listens."""
        return self._source

    @property
    def listening(self) -> bool:
        """Whether somebody listens to metrics now."""
        return self._source.find() is not None

    def record_duration(
        self, operation: str, duration_ms: float, status: str, error_code: str | None = None
    ) -> None:
        """Record how long an operation took."""
        if (instruments := self._found()) is not None:
            try:
                split = self._split(operation, status, error_code)
                instruments.duration.record(duration_ms, split)
            except Exception as error:
                note_failure("duration metric", error)

    def add_conflict(self, operation: str) -> None:
        """Count one operation that a conflict refused."""
        if (instruments := self._found()) is not None:
            try:
                instruments.conflicts.add(1, self._split(operation))
            except Exception as error:
                note_failure("conflict metric", error)

    def add_bytes(self, operation: str, size: int | None) -> None:
        """Count content that an operation read or wrote."""
        if (instruments := self._found()) is not None and (amount := whole(size)):
            try:
                instruments.bytes.add(operation, amount)
            except Exception as error:
                note_failure("bytes metric", error)

    def record_watch_lag(self, lag_ms: float) -> None:
        """Record the time between a commit and the delivery of its event."""
        if (instruments := self._found()) is not None:
            try:
                instruments.lag.record(max(0, lag_ms))
            except Exception as error:
                note_failure("watch lag metric", error)

    def _split(
        self, operation: str, status: str | None = None, error_code: str | None = None
    ) -> Attributes:
        """Return what a measurement is split by, made once for each of the few splits there are."""
        try:
            found = self._splits.get((operation, status, error_code))
        except TypeError:  # what cannot be a key cannot be an attribute
            return measure_attributes(operation, status, error_code)
        if found is None:
            found = measure_attributes(operation, status, error_code)
            if len(self._splits) < _MOST_SPLITS:
                self._splits[operation, status, error_code] = found
        return found

    def _found(self) -> _Instruments | None:
        if self._instruments is not None:
            return self._instruments
        meter = self._source.find()
        if meter is None:
            return None
        try:
            self._instruments = _instruments_of(meter)
        except Exception as error:
            note_failure("metric instruments", error)
        return self._instruments
