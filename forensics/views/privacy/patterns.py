"""How names of machines and people look in a log."""

from __future__ import annotations

import re

PSEUDONYM = re.compile(r"(?:host|user|ipv4|ipv6|link-local|mac|email|path|gpu-uuid|id)-\d+")

_HOST = r"[A-Za-z0-9](?:[\w-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[\w-]*[A-Za-z0-9])?)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"

REQUESTS = (
    # SGLang's own request logging: what the client sent and got.
    (re.compile(r"((?:Receive|Finish): (?:obj|request_id|request)\b=?)\s*.*", re.S),
     r"\1[request]"),
    (re.compile(r"""(?<!\w)((?:text|prompt|prompts|content|input_text|output_text|query|completion)"""
                r"""\\?["']?\s?[:=]\s?)(?:\\"(?:[^"\\]|\\[^"])*(?:\\")?|"(?:[^"\\]|\\.)*"?"""
                r"""|\\'(?:[^'\\]|\\[^'])*(?:\\')?|'(?:[^'\\]|\\.)*'?)""", re.S),
     r"\1'[request]'"),
    (re.compile(r"""(?<!\w)((?:messages|input_ids|output_ids|prompt_token_ids|image_data|audio_data)"""
                r"""\\?["']?\s?[:=]\s?)\[(?:[^\[\]]|\[[^\[\]]*\])*\]?"""), r"\1[request]"),
)  # fmt: skip
"""Texts of requests, with what is put in their place."""

EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
AT_HOST = re.compile(rf"(?<![\w.+/-])([a-z_][\w.-]{{0,31}})@({_HOST})(?![\w@])")
"""`alice@gpu07`, as prompts and ssh print it."""

HOME = re.compile(r"((?:/home/|/Users/|\b[A-Za-z]:\\{1,2}Users\\{1,2}))([^/\\\s'\",:;)\]]+)")
HOME_PATH = re.compile(r"(?:/home/|/Users/)[^\s'\",:;()\[\]]+")
USERS = (
    re.compile(r"(?i)(?<![A-Za-z])(?:user|username|user_name|logname|sudo_user)['\"]?\s?[=:]\s?['\"]?"
               r"([a-z_][\w.-]{1,31})(?![\w./\\:(-])"),
    re.compile(r"\b[ug]id=\d+\(([a-z_][\w.-]{1,31})\)"),
    re.compile(r"\b(?:sudo|su)\s+(?:-u|-)\s*([a-z_][\w.-]{1,31})\b"),
    re.compile(r"\bfor user '?([a-z_][\w.-]{1,31})\b"),
)  # fmt: skip

URL_HOST = re.compile(rf"\b[a-z][a-z0-9+.-]*://(?:[^\s/@'\"]*@)?({_HOST})(?=[:/?#\s'\",)\]]|$)")
FULL_NAME = re.compile(
    rf"(?<![\w./@-])((?:{_LABEL}\.)+(?:internal|intranet|lan|corp|local|svc|cluster|localdomain|arpa"
    r"|com|net|org|edu|gov|mil|io|ai|cloud|eu|de|fr|uk|ch|nl|it|es|se|no|fi|pl|at|be|cz|ru|ua|cn|jp"
    r"|kr|tw|sg|in|au|ca|br|us))(?![\w-])(?!\.\w)(?!\()"
)
AWS_NAME = re.compile(rf"\bip-\d{{1,3}}(?:-\d{{1,3}}){{3}}(?:\.{_HOST})?")
HOSTS = (
    re.compile(rf"(?i)(?<![A-Za-z])(?:host ?name|nodename|node_name|host|node|server|machine|peer"
               rf"|master[_-]addr|dist[_-]init[_-]addr|leader|slurmd_nodename|pod(?:_name)?)"
               rf"['\"]?(?:\s?[=:]\s?|\s)['\"]?({_HOST})"),
    re.compile(rf"\[({_HOST})\]:\d{{2,5}}\b"),
    re.compile(r"(?<![\w./@-])([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*\d[A-Za-z0-9-]*):\d{4,5}\b"),
    re.compile(r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
               r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d))"
               r" ([A-Za-z][\w.-]*) [\w./-]+(?:\[\d+\])?: ", re.M),
)  # fmt: skip
"""A name that its surroundings call a host; `is_host_name` decides."""

IPV4 = re.compile(r"(?<![\w.=-])(?<!==)(\d{1,3}(?:\.\d{1,3}){3})(?![\w-])(?!\.\d)")
DASHED_IPV4 = re.compile(r"(?<=[a-z]-)\d{1,3}(?:-\d{1,3}){3}(?!\d)")
IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:)([0-9A-Fa-f:]{3,45})(?![\w:])")
MAC = re.compile(r"(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])")
GID = re.compile(r"(?<![\w:-])(?:[0-9A-Fa-f]{2}:){15}[0-9A-Fa-f]{2}(?![\w:-])")
"""An InfiniBand GID as bytes: an IPv6 address."""

GPU_UUID = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
IDENTITY = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""Containers, pods and machines by their long number."""

_PUBLIC = re.compile(
    r"(?i)(?:.*\.)?(?:huggingface\.co|hf\.co|modelscope\.cn|modelscope\.ai|github\.com|github\.io"
    r"|githubusercontent\.com|pypi\.org|pythonhosted\.org|pytorch\.org|nvidia\.com|sglang\.ai"
    r"|sglang\.io|lmsys\.org|python\.org|docker\.io|docker\.com|quay\.io|ghcr\.io|nvcr\.io|amd\.com"
    r"|pydantic\.dev|readthedocs\.io|wikipedia\.org|google\.com|openai\.com|anthropic\.com)$"
)
_NO_HOSTS = frozenset(
    {
        *("localhost", "none", "null", "true", "false", "memory", "process", "is", "has", "and"),
        *("the", "socket", "failed", "not", "available", "names", "name", "ranks", "rank"),
        *("number", "args"),
    }
)
_CODE = frozenset(
    {
        *("self", "torch", "sglang", "triton", "numpy", "transformers", "flashinfer", "vllm"),
        *(
            "os",
            "sys",
            "deep_gemm",
            "xgrammar",
            "outlines",
            "ray",
            "uvicorn",
            "fastapi",
            "forward_batch",
        ),
        *("server_args",),
    }
)
_FILES = re.compile(
    r"(?i)\.(?:py|log|txt|json|jsonl|yaml|yml|toml|md|so|cu|cuh|h|cpp|bin|pt|safetensors|sh|gz|whl)$"
)

GENERIC_USERS = frozenset(
    {
        *("root", "user", "admin", "app", "runner", "nobody", "none", "null", "sglang", "default"),
    }
)
GENERIC_FOLDERS = frozenset(
    {
        *("", "models", "model", "data", "mnt", "workspace", "root", "opt", "srv", "cache"),
        *("hf", "hub", "huggingface", "weights", "checkpoints", "tmp", "nfs", "shared", "volume"),
        *("raid", "ssd", "nvme", "home", "usr", "local", "lib", "var", "log", "logs", "app"),
        *("sgl-workspace", ".cache", "fixtures", "tests", "dev", "shm", "snapshots", "user-1"),
        *("run", "storage", "scratch", ".", ".."),
    }
)
"""Parts of paths that tell nothing of anybody."""


def is_host_name(name: str, *, plain: bool = False) -> bool:
    """Whether a word is the name of a private machine; `plain`: even without digit or hyphen."""
    lower = name.lower()
    if lower in _NO_HOSTS or PSEUDONYM.fullmatch(name) or _PUBLIC.match(lower):
        return False
    if lower.split(".")[0] in _CODE or _FILES.search(name) or "_" in name or len(name) < 3:
        return False
    if re.fullmatch(r"[\d.]+|\d.*", name) or not re.search(r"[A-Za-z]", name):
        return False
    return plain or bool(re.search(r"[-.\d]", name))
