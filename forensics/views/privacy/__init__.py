"""Takes people and places out of what is published: hosts, addresses, users, paths, requests.

`forensics.redact` masks secrets in everything that is printed. This goes further, on request:
every name gets a pseudonym, the same wherever it stands, so that a report still tells which node
spoke to which.
"""

from forensics.views.privacy.names import Names
from forensics.views.privacy.walk import anonymous, hidden

__all__ = ["Names", "anonymous", "hidden"]
