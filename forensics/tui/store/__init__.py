"""The store behind the panes: every line of the logs, indexed in the background."""

from forensics.tui.store.criteria import Criteria, CriteriaError, parse_criteria
from forensics.tui.store.rows import LinePlace, Rows
from forensics.tui.store.store import EventStore, Line

__all__ = [
    "Criteria",
    "CriteriaError",
    "EventStore",
    "Line",
    "LinePlace",
    "Rows",
    "parse_criteria",
]
