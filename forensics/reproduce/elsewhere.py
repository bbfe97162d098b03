"""The terms of trials that run elsewhere: through a transport, reached or not, with other GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from forensics.redact import REDACTED
from forensics.reproduce.model import TrialPlan
from forensics.reproduce.transport import Transport
from forensics.reproduce.trial import Terms


def terms_on(transport: Transport, terms: Terms) -> Terms:
    """The same terms for launches that a transport makes.

    A server there is asked only where it listens on the network of this machine: at the ports of
    another one somebody else's server might answer here.
    """

    def wrap(trial: TrialPlan, own: Mapping[str, str]) -> list[str]:
        env = {name: text for name, text in trial.env.items() if REDACTED not in text}
        return transport.wrap(trial.command, {**own, **env}, trial.unset_env)

    near = transport.is_local_network
    return replace(
        terms, wrap=wrap, gpus_here=near, reach=(lambda target: target) if near else _unreached
    )


def _unreached(target: object) -> None:
    """No server there is asked from here."""
