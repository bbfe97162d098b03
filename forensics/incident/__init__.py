"""Facts drawn from timelines: runs, ranks, launch, outcome, memory ledger. No opinions."""

from forensics.incident.build import IncidentBuilder
from forensics.incident.model import Failure, Incident, RankFacts, Run, SourceFacts

__all__ = ["Failure", "Incident", "IncidentBuilder", "RankFacts", "Run", "SourceFacts"]
