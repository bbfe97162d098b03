"""How transfers of the KV cache between prefill and decode fail, and what to do about each way."""

from __future__ import annotations

import re
from dataclasses import dataclass

from forensics.findings import Remedy
from forensics.launch import Launch
from forensics.remedies import action, env, flag, kept


@dataclass(frozen=True, slots=True)
class Trouble:
    """One way in which a transfer fails: its words, its name, and what to do."""

    name: str
    pattern: re.Pattern[str]
    title: str
    why: str
    transport: bool = True
    """The side that moves the data says so; else it is the other side's complaint."""


TROUBLES = (
    Trouble(
        "no_device",
        re.compile(
            r"No available RNIC|No IB devices|Failed to open RDMA|Failed to open (?:IB|RDMA) device"
            r"|Mooncake Transfer Engine initialization failed|no RDMA devices"
        ),
        "No RDMA device could be opened for KV transfers",
        "The transfer engine found no usable RDMA device: none is visible in the container, or the "
        "name given is not one of this host.",
    ),
    Trouble(
        "registration",
        re.compile(r"Failed to register memory|ibv_reg_mr|memory registration failed"),
        "GPU memory could not be registered with the RDMA device",
        "The device cannot reach GPU memory directly: usually the nvidia-peermem module is not "
        "loaded on the host, or the container may not lock memory (memlock).",
    ),
    Trouble(
        "handshake",
        re.compile(r"Failed to modify QP to RTR|Failed to exchange handshake|Failed to set up QP"),
        "The RDMA connection between prefill and decode could not be set up",
        "The two devices do not reach each other: different networks or address types (GID), or a "
        "mismatch of MTU.",
    ),
    Trouble(
        "protection",
        re.compile(r"local protection error|remote access error|local access violation"),
        "An RDMA write of the KV cache was refused",
        "The device refused the address that it was given to read or write: memory that is not "
        "registered with it, or a connection over an address that does not route.",
    ),
    Trouble(
        "retries",
        re.compile(r"transport retry counter exceeded|RNR retry|retry exceeded"),
        "An RDMA write of the KV cache got no answer",
        "Packets are lost or do not route between the two devices: link, switch (flow control), "
        "address type (GID), or the other process has died.",
    ),
    Trouble(
        "nixl",
        re.compile(r"NIXL_ERR_\w+|nixlBackendError|UCX\s+ERROR"),
        "NIXL could not transfer the KV cache",
        "The transfer library reports an error of its backend.",
    ),
    Trouble(
        "mismatch",
        re.compile(r"(?:Page size|KV cache dtype|kv_cache_dtype|TP size|page_size) mismatch"),
        "Prefill and decode were started with different settings",
        "Both sides must agree on the layout of the KV cache that they exchange.",
    ),
    Trouble(
        "bootstrap",
        re.compile(
            r"(?:Could not fetch|Error fetching|Failed to fetch) prefill (?:parallel )?info"
            r"|timed out after [\d.]+ ?s in KVPoll\.Bootstrapping"
            r"|Failed to register (?:to|prefill instance to) bootstrap"
            r"|bootstrap server.*(?:refused|unreachable)"
        ),
        "Decode and prefill did not find each other at the bootstrap server",
        "The bootstrap server of the prefill instance did not answer: wrong address or port, a "
        "blocked port, or prefill that is not up yet.",
        transport=False,
    ),
    Trouble(
        "waiting",
        re.compile(
            r"timed out after [\d.]+ ?s in KVPoll|Failed to get kvcache from prefill instance"
            r"|Failed to send kv chunk|Losing connection with prefill instance"
            r"|Lost connection with prefill|Decode instance could be dead|KVTransferError"
        ),
        "The KV cache of a request did not arrive",
        "The side that waits cannot know why: the cause stands in the other side's log.",
        transport=False,
    ),
)


REFUSED = re.compile(r"Connection refused|No route to host|Name or service not known|Errno 111\]")
"""Nobody listens there, or the address is wrong: waiting longer does not help."""
LOOPBACK = re.compile(
    r"host='(?:127\.|localhost|::1)|(?:\baddr|://)\S*\b(?:127\.0\.0\.1|localhost)|0\.0\.0\.0"
)
"""An address that means this host itself, or no host at all."""
SENT_TO_ITSELF = (
    " The address that decode was given is that of its own host (loopback): whoever pairs the two "
    "(router, load balancer, client) must name the prefill server as decode reaches it."
)


def remedies_of(
    trouble: Trouble, launch: Launch, *, link_local: bool, said: str = ""
) -> list[Remedy]:
    """What to do; `link_local`: the device chose an address that does not route."""
    device = flag(
        launch,
        "disaggregation_ib_device",
        "<device with a routable GID>",
        "names the device instead of leaving the choice to discovery",
        direction="set",
    )
    index = env(
        "MC_GID_INDEX", "set", "the address that Mooncake uses of the device", to="<RoCE v2 index>"
    )
    links = action("check_ib_link", "ibstat and ib_write_bw between the two hosts")
    peermem = action("load_nvidia_peermem", "modprobe nvidia-peermem on the host")
    other = _other_backend(launch)
    chosen: dict[str, list[Remedy | None]] = {
        "no_device": [device, other],
        "registration": [peermem, device],
        "handshake": [device, index, links],
        "protection": [device, index, other, None if link_local else peermem],
        "retries": [links, device, index],
        "nixl": [other, links],
    }
    return kept(*(chosen.get(trouble.name) or _without_transport(trouble, said)))


def _other_backend(launch: Launch) -> Remedy | None:
    return flag(
        launch,
        "disaggregation_transfer_backend",
        "mooncake" if launch.get("disaggregation_transfer_backend") == "nixl" else "nixl",
        "another transport, on both sides",
        direction="set",
        cost="both sides must have it installed",
    )


def _without_transport(trouble: Trouble, said: str) -> list[Remedy]:
    """Where the devices are not at fault."""
    if trouble.name == "mismatch":
        return [action("align_settings", "page size, dtype and layout alike on both sides")]
    if trouble.name == "bootstrap":
        longer = env(
            "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT",
            "increase",
            "if prefill is only slow to come up",
            to="600",
        )
        return kept(
            action("check_bootstrap_address", "the prefill host and port, as decode reaches them"),
            None if REFUSED.search(said) else longer,
        )
    return [action("read_prefill_log", "the cause stands in the other side's log, at this time")]


def not_helpful(trouble: Trouble) -> list[str]:
    """What people try that changes nothing."""
    if not trouble.transport:
        return []
    return [
        "disaggregation_bootstrap_port: both sides had found each other",
        "restarting prefill or decode: both are alive",
    ]
