"""Writes inference_config.yaml, the ConfigMap with vLLM's flags for a preset, and checks the flags.

KAITO adds each key below `vllm` to the command line, with its value, after its own flags. Source:
kaito-project/kaito v0.11.0 presets/workspace/inference/vllm/inference_api.py parse_args.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from kthena_components.core.engines import SERVE, CommandFacts, Problem, read_command
from kthena_components.core.engines.argv import by_flag
from kthena_components.core.engines.config_files import as_words, kaito_words
from kthena_components.core.engines.files import Broken, read_yaml
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.schema.versions import known_version
from kthena_components.core.values.blanks import is_blank
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved
from kthena_components.systems.kaito.options import options_of
from kthena_components.systems.kaito.view import CONFIG_KEY

CONFIG = "kaito-config"
"""The rule about inference_config.yaml, in a component and in any manifest."""
PORT = 5000
"""Port of the probes and Services of a preset's pods."""
_START = ("vllm", "serve")
_BASE = (*_START, "m")
_RELEASES = {"0.11": "vllm/vllm-openai:v0.22.1"}
"""The release of vLLM in KAITO's image, by KAITO's. Source: presets/workspace/models/
supported_models.yaml."""
WRITTEN_FOR = "0.11"
"""The release of KAITO that the backend writes for."""
RELEASE = _RELEASES[WRITTEN_FOR]
_ONCE = "but KAITO writes each flag once, with one value"
_HASH = 10


@dataclass(slots=True)
class Flags:
    """The flags of extra_args, as keys and values."""

    known: dict[str, str] = field(default_factory=dict)
    """Values by flag, without dashes."""
    wrong: list[str] = field(default_factory=list)
    """What cannot be written, and why."""


def flags_of(words: Sequence[str]) -> Flags:
    """Read flags that have one value each; others cannot be written."""
    found = Flags()
    for flag, values in by_flag(words):
        key = _key(flag, values)
        if is_unresolved(flag) or any(map(is_unresolved, values)):
            found.wrong.append("is not known while the plan is built, but may decide the nodes")
        elif not flag.startswith("--") or flag == "--":
            found.wrong.append(
                f"has {display(flag)}, which is not a flag of the form --name, {_ONCE}"
            )
        elif not values:
            found.wrong.append(f"has the switch {display(flag)}, which has no value, {_ONCE}")
        elif len(values) > 1:
            found.wrong.append(f"has {display(flag)} with {len(values)} values, {_ONCE}")
        elif key in found.known:
            found.wrong.append(f"has {display(flag)} twice, {_ONCE}")
        else:
            found.known[key] = values[0]
    return found


def _key(flag: str, values: Sequence[str]) -> str:
    """Return the key of a flag: abbreviations and underscores become vLLM's own spelling."""
    found = read_command([*_BASE, flag, *values], {}, image=RELEASE)
    names = list(found.options) if found else []
    head, dot, rest = flag.removeprefix("--").partition(".")
    own = head.replace("_", "-") + dot + rest
    return names[0].removeprefix("--") if len(names) == 1 and not dot else own


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """What vLLM rejects of the flags."""

    seen: str
    remedy: str
    sure: bool
    """Whether the vLLM of the cluster rejects it: any release, or the one in that KAITO."""
    always: bool
    """Whether any release rejects it."""


def mistakes_in(words: Sequence[str], version: str | None) -> list[Mistake]:
    """Return what vLLM rejects of the flags that KAITO appends to its command line.

    Args:
        words: The flags and values. One bare word is accepted, as the model of `vllm serve`.
        version: KAITO's version. None or an unknown one: what its 0.11 and the newest vLLM reject.
    """
    release = _RELEASES.get(known_version(version, "kaito") or "") if version else None
    here, newest = _rejected(words, release or RELEASE), _rejected(words, None)
    found: list[Mistake] = []
    for flag, problem in here.items():
        always = flag in newest and newest[flag].hard
        sure = always or release is not None
        if sure or flag in newest:
            found.append(_mistake(problem, sure=sure, always=always))
    return found


def _rejected(words: Sequence[str], image: str | None) -> dict[str, Problem]:
    found = read_command([*_START, *words], {}, image=image)
    problems = found.problems if found else ()
    # KAITO states the model. Without an image, what depends on the release is not hard.
    stated = (p for p in problems if p.option and p.flag != SERVE)
    return {p.flag: p for p in stated if p.hard or image is None}


def _mistake(problem: Problem, *, sure: bool, always: bool) -> Mistake:
    remedy = problem.remedy or f"correct {problem.flag}"
    if problem.flag.startswith("-"):
        return Mistake(seen=problem.text, remedy=remedy, sure=sure, always=always)
    seen = f"'{problem.flag}' is a value of a switch, which takes none, and KAITO writes one"
    return Mistake(seen=seen, remedy="keep one switch at most", sure=sure, always=always)


def words_of(flags: Mapping[str, Any]) -> list[str]:
    """Write flags as KAITO's launcher does."""
    return as_words(flags, kaito_words)


def command_with(words: Sequence[str]) -> CommandFacts:
    """Read a command line with some flags."""
    return read_command([*_START, *words], {}) or CommandFacts()


def is_switch(key: str) -> bool:
    """Return whether vLLM takes a key without a value."""
    found = read_command([*_BASE, f"--{key}"], {}, image=RELEASE)
    return found is not None and not found.problems


def config_text(plan: ServingPlan, role: RolePlan) -> str:
    """Write the content of the ConfigMap.

    Numbers are written without quotes, because KAITO reads max-model-len by lines. An empty map
    below vllm is needed: inference_api.py fails for a file without content.
    """
    import yaml  # noqa: PLC0415 - slow to load, and only presets need it

    known = flags_of(role.engine.extra_args).known if role.engine else {}
    content: dict[str, object] = {}
    share = options_of(plan).kv_cache_cpu_memory_utilization
    if share is not None:
        content["kv_cache_cpu_memory_utilization"] = share
    content["vllm"] = {key: _plain(value) for key, value in known.items()}
    return str(yaml.safe_dump(content, sort_keys=False, width=_WIDEST))


_WIDEST = 2**31


def _plain(value: str) -> str | int:
    short = value.isascii() and value.isdecimal() and len(value) < _HASH
    return int(value) if short and str(int(value)) == value else value


def config_name(set_name: str, text: str) -> str:
    """Name the ConfigMap by its content, so that KAITO rolls out a change."""
    return f"{set_name}-{hashlib.sha256(text.encode()).hexdigest()[:_HASH]}"


def config_map(name: str, namespace: str, labels: dict[str, str], text: str) -> dict[str, object]:
    """Write the ConfigMap."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    identity = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return {**identity, "data": {CONFIG_KEY: text}}


# What KAITO's webhook rejects of an inference_config.yaml: the ConfigMap of inference.config.
#
# Its loader reads texts below `vllm`, and leaves each value as it is written: 0x10 stays a string.
#
# Source: kaito-project/kaito v0.11.0 api/v1beta1/inference_config_validation.go
# validateInferenceConfig.


MAX_LEN = "max-model-len"
VLLM = "vllm"
_WHOLE = regex(r"[+-]?[0-9]{1,60}")
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Rejected:
    """A value that the webhook rejects, in the words of a finding."""

    seen: str
    remedy: str


def rejected_length(stated: str, most: int | None) -> Rejected | None:
    """Check max-model-len; None if the webhook accepts it, and for a placeholder.

    Args:
        stated: The value as it is written, without quotes.
        most: The longest request of the model; None if it is not known, and nothing is checked.
    """
    word = stated.strip()
    if not word or most is None or is_blank(word):
        return None
    if not _WHOLE.fullmatch(word) or not -_INT64 <= int(word) < _INT64:
        seen = f"has {MAX_LEN} {display(stated)}, but KAITO accepts only a whole number there"
        return Rejected(seen, f"write the number of tokens, at most {most}")
    if int(word) > most:
        seen = f"has {MAX_LEN} {word}, but KAITO accepts at most the model's {most}"
        return Rejected(seen, f"write at most {most}")
    return None


def rejected_file(text: str, most: int | None) -> Rejected | None:
    """Check a whole file; None if the webhook accepts it, or if it cannot be read here.

    Args:
        text: The content of the key inference_config.yaml.
        most: The longest request of the model, or None.
    """
    found = read_yaml(text)
    if isinstance(found, Broken):
        seen = f"names a file that KAITO cannot read: {found.because}"
        return Rejected(seen, "write a map in YAML, with the options of vLLM below vllm")
    if isinstance(found, Unknown):
        return None
    flags = found.get(VLLM)
    if flags is None:
        return None
    if not isinstance(flags, Mapping):
        seen = "has vllm, which is not a map"
        return Rejected(seen, "write the options of vLLM below it, as keys with values")
    nested = next((key for key, value in flags.items() if isinstance(value, dict | list)), None)
    if nested is not None:
        kind = "map" if isinstance(flags[nested], dict) else "list"
        seen = (
            f"has a {kind} below {display(nested)}, but KAITO reads only strings and numbers there"
        )
        return Rejected(seen, "write it as one string in quotes, in JSON")
    length = flags.get(MAX_LEN)
    return None if length is None else rejected_length(_written(text, MAX_LEN, length), most)


def _written(text: str, flag: str, read: object) -> str:
    """Return a value below `vllm` as it is written; the caller has read the file already.

    A value of another map, which YAML merges, is returned as it was read.
    """
    import yaml  # noqa: PLC0415 - slow to load

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    found = yaml.load(text, Loader=loader)  # noqa: S506 - makes nothing but strings, lists and maps
    return str(mapping(mapping(found).get(VLLM)).get(flag, read))
