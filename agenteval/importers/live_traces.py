"""The public interface for agents that are observed through their OpenTelemetry spans: parses exports (OTLP)
into spans, and the spans of a reply into a turn."""

from agenteval.importers.otlp import NotOtlpError, spans_of_json, spans_of_protobuf
from agenteval.importers.span_calls import TracedTurn, has_served, is_complete, turn_of
from agenteval.importers.spans import trace_of

__all__ = [
    "NotOtlpError",
    "TracedTurn",
    "has_served",
    "is_complete",
    "spans_of_json",
    "spans_of_protobuf",
    "trace_of",
    "turn_of",
]
