"""Spans, metrics and the keyed path hash; the only room that knows OpenTelemetry."""
