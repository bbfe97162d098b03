"""What in a launch would execute code that is neither SGLang's nor the user's.

Facts: the fields of all releases that name code to import, a checkpoint's own code, a template,
or a place that weights are fetched from; variables that make Python or the loader take code from
elsewhere. A log can name any of them, so each needs a consent of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath

from forensics.launch import Launch, Value
from forensics.launch.arguments import groups
from forensics.redact import redact
from forensics.releases import Release
from forensics.reproduce.model import Consent

_MODULES = frozenset({"sglang.launch_server", "sglang.compile_deep_gemm", "sglang.cli.main"})
_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)*)?")
_WITH_VALUE = frozenset({"-W", "-X"})
"""Options of Python that are followed by a word."""


def _is_on(value: Value) -> bool:
    return value is True


def _is_given(value: Value) -> bool:
    return value not in (None, False, "", [], {})


def _is_file(value: Value) -> bool:
    """A path rather than the name of something that SGLang brings."""
    return isinstance(value, str) and ("/" in value or value.endswith((".jinja", ".json", ".py")))


def _one_of(*names: str) -> Callable[[Value], bool]:
    return lambda value: value in names


_FIELDS: dict[str, tuple[Callable[[Value], bool], str]] = {
    "trust_remote_code": (_is_on, "Python files that come with the checkpoint are executed"),
    "custom_weight_loader": (_is_given, "functions are imported by these names"),
    "custom_sigquit_handler": (_is_given, "a function is imported by this name"),
    "stat_loggers": (_is_given, "classes are imported by these names"),
    "forward_hooks": (_is_given, "functions are imported by the names in it"),
    "enable_custom_logit_processor": (_is_on, "requests may carry code, which is executed"),
    "trust_request_chat_template": (_is_on, "requests may carry a template, which is executed"),
    "chat_template": (_is_file, "the template in this file is executed for each request"),
    "completion_template": (_is_file, "the template in this file is executed for each request"),
    "tool_call_parser": (_is_file, "a parser is loaded from this file"),
    "reasoning_parser": (_is_file, "a parser is loaded from this file"),
    "model_config_parser": (_is_file, "a parser is loaded from this file"),
    "load_format": (
        _one_of("remote", "remote_instance", "private"),
        "weights, and files with them, are fetched from a place that the launch names",
    ),
    "hicache_storage_backend": (_one_of("dynamic"), "a storage class is imported by name"),
}
_ANY_FIELD = re.compile(r"(?:^|_)(?:plugins?|hooks?)(?:_|$)|^custom_")
_ANY_FLAG = re.compile(r"--(?:[\w-]*-)?(?:plugins?|hooks?)(?:-[\w-]*)?$|--custom-[\w-]+$")

_VARIABLES = re.compile(
    r"PYTHON(?:PATH|HOME|STARTUP|USERBASE|BREAKPOINT|PLATLIBDIR)|PATH|LD_\w+|CUDA_INJECTION\w*"
    r"|SGLANG_EXTERNAL_\w+|\w*PLUGINS?(?:_\w+)?|NCCL_(?:NET|TUNER|PROFILER)\w*_PLUGIN"
    r"|TORCH_EXTENSIONS_DIR|TRITON_(?:CACHE_DIR|PTXAS\w*)|FLASHINFER_\w*(?:DIR|BASE)|HF_ENDPOINT"
    r"|CC|CXX|CUDACXX|CUDA_HOME|CUDA_PATH|BASH_ENV|ENV"
)


def consents(
    command: Sequence[str],
    launch: Launch,
    release: Release,
    env: Mapping[str, str],
    own_env: Mapping[str, str] | None = None,
) -> list[Consent]:
    """What of a launch needs a consent; `own_env` are variables that the user has typed.

    Read from the argument list as it would run, by the release that would read it.
    """
    found = [
        *_of_program(command),
        *_of_flags(command[_length(command, launch) :], release),
        *_of_variables(env, own_env or {}),
    ]
    return list({consent.what: consent for consent in found}.values())


def _length(command: Sequence[str], launch: Launch) -> int:
    """How many words of a command are its program."""
    length = len(launch.program)
    return length if list(command[1:length]) == launch.program[1:] else 1


def _of_program(command: Sequence[str]) -> Iterator[Consent]:
    """A program that is neither Python with SGLang's module, nor `sglang`."""
    name = PurePath(command[0]).name if command else ""
    if name == "sglang" and command[1:2] == ["serve"]:
        return
    if _PYTHON.fullmatch(name):
        what = _runs(command[1:])
        if what is None:
            return
        yield Consent(what=what, because="this is not SGLang's server, whose launches are known")
        return
    yield Consent(what=redact(" ".join(command[:3])), because="this program is not SGLang's server")


def _runs(words: Sequence[str]) -> str | None:
    """What Python is told to run; None for SGLang's own modules."""
    skip = False
    for number, word in enumerate(words):
        if skip:
            skip = False
        elif word in _WITH_VALUE:
            skip = True
        elif word == "-m":
            module = words[number + 1] if number + 1 < len(words) else ""
            return None if module in _MODULES else f"-m {module}"
        elif word == "-c" or not word.startswith("-"):
            return redact(word if word != "-c" else "-c ...")
    return "python without a program"


def _of_flags(arguments: Sequence[str], release: Release) -> Iterator[Consent]:
    for group in groups(list(arguments), release):
        flag = group.tokens[0].split("=", 1)[0]
        what = redact(" ".join(group.tokens))
        field = group.field or flag.removeprefix("--").replace("-", "_")
        applies, because = _FIELDS.get(field, (None, ""))
        if applies is not None and applies(group.value if group.field else True):
            yield Consent(what=what, because=because)
        elif applies is None and (_ANY_FIELD.search(field) or _ANY_FLAG.match(flag)):
            yield Consent(what=what, because="by its name it loads code from elsewhere")
        elif flag == "--config":
            yield Consent(what=what, because="the flags in this file were not looked at")


def foreign_variables(env: Mapping[str, str], own: Mapping[str, str]) -> list[str]:
    """Variables of a launch by which code is found; what the user has typed is not foreign."""
    return [n for n, value in env.items() if _VARIABLES.fullmatch(n) and own.get(n) != value]


def _of_variables(env: Mapping[str, str], own: Mapping[str, str]) -> Iterator[Consent]:
    for name, value in env.items():
        if name in foreign_variables(env, own):
            because = "the launch sets it, and it may make it load code from elsewhere"
            yield Consent(what=redact(f"{name}={value}"), because=because)
