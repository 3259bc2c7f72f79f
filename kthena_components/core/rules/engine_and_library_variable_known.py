"""Rules of the variables of engines, NCCL and Ray: their names and their values."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.facts.network import OWN_PORT, OWN_PORT_SINCE, VariableFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, advise, not_checked
from kthena_components.core.remedies import remove, write
from kthena_components.core.rules.support.engine_pods import Start, all_starts
from kthena_components.core.rules.support.messages import is_number, slip_of, title
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.images import Version, parse_version, read_image
from kthena_components.core.values.unknown import Unknown

_OWN = ("VLLM_", "SGLANG_", "SGL_")
_TABLES = ("kthena_components.core.engines", "tables/variables.json")


def engine_variable_known(facts: ServingFacts) -> Iterator[Finding]:
    """No variable of an engine's container misspells one that its release reads.

    An engine ignores a variable that it does not know, so the setting has no effect. Reported are
    names that begin with VLLM_ or SGLANG_ in an engine's own image, that no release mentions, that
    nothing else in the container mentions, and that differ from one of this release in a letter.

    Pass: VLLM_HOST_IP 10.0.0.7; VLLM_USE_V1 with a vLLM that no longer reads it; MY_VARIABLE.
    Fail: VLLM_HOST_IPS 10.0.0.7; SGLANG_ENABLE_TORCH_COMPIL 1.
    Level: advisory, because the engine starts.
    Source: vllm/envs.py (environment_variables) and sglang/srt/environ.py with the other files of
    each published release; core/engines/tables/variables.json.
    """
    for start in all_starts(facts, "vllm", "sglang"):
        pod = start.pod
        own, release = pod.own, start.command.release
        if own is not None and release is not None and release.sure and pod.engine_variables:
            yield from _misspelled(start, own.path, sorted(pod.engine_variables), release.version)


def _misspelled(start: Start, path: str, names: list[str], version: Version) -> Iterator[Finding]:
    """Report variables with the engine's prefix that resemble one which its release reads."""
    every, here = _names(str(start.command.engine)), None
    for name in names:
        if name in every or not name.startswith(_OWN):
            continue
        here = _of_release(str(start.command.engine), version) if here is None else here
        meant = slip_of(name, here)
        if meant is not None:
            yield Finding(
                path=path,
                seen=f"{title(start.engine)} has the variable {name}, which {start.product} does "
                "not read, so it has no effect",
                remedy=f"write {meant}",
                level=Level.ADVISORY,
            )


@cache
def _table(engine: str) -> Mapping[str, Any]:
    package, file = _TABLES
    rows: Mapping[str, Any] = json.loads(resources.files(package).joinpath(file).read_text())
    return rows[engine]  # type: ignore[no-any-return]


@cache
def _releases(engine: str) -> tuple[Version | None, ...]:
    return tuple(map(parse_version, _table(engine)["releases"]))


@cache
def _names(engine: str) -> frozenset[str]:
    return frozenset(_table(engine)["names"])


@cache
def _of_release(engine: str, version: Version) -> tuple[str, ...]:
    """Return the variables that a release reads; none if the table lacks the release."""
    releases = _releases(engine)
    if version not in releases:
        return ()
    number = releases.index(version)
    spans = _table(engine)["names"].items()
    return tuple(n for n, listed in spans if any(a <= number <= b for a, b in listed))


def engine_variable_number(facts: ServingFacts) -> Iterator[Finding]:
    """VLLM_PORT, if it is set, is a number.

    It is the first port at which vLLM's own processes meet, and not the port of its server
    (--port). vLLM stops if it is anything else. service-named-vllm reports the Service that sets
    it.

    Pass: VLLM_PORT 29600; none; any string for a release before 0.4.3, which does not read it.
    Fail: VLLM_PORT tcp://10.0.0.1:8000; VLLM_PORT http; VLLM_PORT without a value.
    Level: mandatory.
    Source: vllm/envs.py VLLM_PORT (get_vllm_port since 0.9.0), which get_open_port reads, of
    0.4.3 to 0.33.0.
    """
    for start in all_starts(facts, "vllm"):
        pod = start.pod
        image = pod.image
        if image and (image.vllm_version or OWN_PORT_SINCE) < OWN_PORT_SINCE:
            continue
        stated = pod.variables.get(OWN_PORT)
        value = None if stated is None else stated.value
        if stated is None or not isinstance(value, str) or is_number(value):
            continue
        if pod.own is not None and isinstance(pod.own.image, Unknown):
            yield not_checked(stated.path, pod.own.image)
            continue
        at = stated.path.removesuffix(".value")
        yield Finding(
            path=at,
            seen=f"sets {OWN_PORT} to {display(value)} for {title(start.engine)}, and vLLM stops, "
            "because it reads the number of a port there",
            remedy="remove it, or write a number" if stated.by_script else remove(at=at),
        )


def engine_variable_value(facts: ServingFacts) -> Iterator[Finding]:
    """A variable of vLLM that takes a number or one of some words has such a value.

    vLLM reads most switches as numbers, so "true" is none, and refuses unknown words of a few
    variables, such as VLLM_ATTENTION_BACKEND. Since 0.11.1 it reads all of its variables when an
    engine starts; before, each when it needs it. What a release takes was tried with its own
    functions. Only images that state a release are checked. VLLM_PORT has a rule for itself:
    engine-variable-number.

    Pass: VLLM_USE_DEEP_GEMM 1; VLLM_WORKER_MULTIPROC_METHOD spawn; a variable that takes any text.
    Fail: VLLM_USE_DEEP_GEMM true; VLLM_WORKER_MULTIPROC_METHOD thread; VLLM_ALL2ALL_BACKEND deepep;
    VLLM_LOGGING_LEVEL VERBOSE, unless vLLM is told to configure its logging in another way.
    Level: mandatory; advisory before vLLM 0.11.1.
    Source: vllm/envs.py (environment_variables, env_with_choices, enable_envs_cache),
    vllm/logger.py and vllm/v1/engine/core.py of each published release;
    core/engines/tables/variables.json.
    """
    for start in all_starts(facts, "vllm"):
        pod, release = start.pod, start.command.release
        if release is None or not release.sure:
            continue
        for name, stated in pod.engine_variables.items():
            takes = None if name == OWN_PORT else _takes(name, release.version)
            if takes is None or (name == _LEVEL and pod.stated & _OWN_LOGGING):
                continue
            if isinstance(stated.value, Unknown):
                yield not_checked(stated.path, stated.value)
            elif stated.value and not takes.allows(stated.value):
                yield _refused(start, name, stated, takes)


def _refused(start: Start, name: str, stated: VariableFacts, takes: "_Takes") -> Finding:
    """Report a value that the engine cannot read; advisory if it may never read the variable."""
    release = start.command.release
    sure = release is not None and release.version >= _READS_ALL
    stops = "and it " + ("exits at startup" if sure else "stops when it reads that")
    seen = f"sets {name} to {display(stated.value)} for {title(start.engine)}, but {start.product} "
    seen += f"takes {takes.title} there, {stops}"
    meant, own = takes.meant(str(stated.value)), stated.path.endswith(".value")
    place = "" if own else " where it comes from"
    return Finding(
        path=stated.path,
        seen=seen,
        remedy=write(meant) if meant and own else f"write {meant or takes.title}{place}",
        level=Level.MANDATORY if sure else Level.ADVISORY,
    )


_READS_ALL: Version = (0, 11, 1)
"""The first release in which an engine reads all variables: enable_envs_cache."""
_LEVEL = "VLLM_LOGGING_LEVEL"
_OWN_LOGGING = frozenset({"VLLM_CONFIGURE_LOGGING", "VLLM_LOGGING_CONFIG_PATH"})
"""With these, vLLM may not pass its level on to Python's logging."""
_SWITCHES = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Takes:
    """What a variable takes."""

    words: tuple[str, ...] = ()
    """The words; empty for a number."""
    whole: bool = True
    """Whether the number is an integer."""
    folds: bool = False
    """Whether words count in capitals and in small letters."""

    @property
    def title(self) -> str:
        """What it takes, in words."""
        if self.words:
            return f"one of {listing(self.words, last='or')}"
        return "an integer" if self.whole else "a number"

    def allows(self, value: str) -> bool:
        """Return whether it takes a value."""
        if self.words:
            known = self.words if not self.folds else tuple(map(str.lower, self.words))
            return (value.lower() if self.folds else value) in known
        return is_number(value, int if self.whole else float)

    def meant(self, value: str) -> str:
        """Return the value that was meant; empty if it is not clear."""
        if not self.words:
            return _SWITCHES.get(value.strip().lower(), "")
        alike = [word for word in self.words if word.lower() == value.lower().replace("-", "_")]
        return alike[0] if alike else slip_of(value, self.words) or ""


@cache
def _takes(name: str, version: Version) -> _Takes | None:
    """Return what a variable takes in a release; None if any string, or if it is not known."""
    table = _table("vllm")
    releases = _releases("vllm")
    number = releases.index(version) if version in releases else -1
    for span in table["values"].get(name, ()):
        if span["releases"][0] <= number <= span["releases"][1]:
            takes = span["takes"]
            if isinstance(takes, str):
                return _Takes(whole=takes == "int")
            return _Takes(words=tuple(takes), folds=span.get("folds", False))
    return None


_LIBRARY_TABLES = ("kthena_components.core.engines", "tables/libraries.json")
_LIBRARIES: Mapping[str, tuple[str, str]] = {"NCCL_": ("nccl", "NCCL"), "RAY_": ("ray", "Ray")}
"""The rows of the table, and the titles, by the beginning of a name."""
_OF_RAY = "rayproject/"


def library_variable_known(facts: ServingFacts) -> Iterator[Finding]:
    """No variable of an engine's container misspells one that NCCL or Ray reads.

    Both ignore a variable that they do not know, so the setting has no effect: NCCL_SOCKET_IFNAMES
    chooses no interface. Reported are names that begin with NCCL_ or RAY_ in an engine's own image
    or one of rayproject, that no release reads, that nothing else in the container mentions, and
    that differ from a known one in a letter. Which release an image has is not known, so a
    name of any release is known: of NCCL since 2.18, of Ray since 2.40. Strings of Ray's programs
    count as its names.

    Pass: NCCL_SOCKET_IFNAME eth0; NCCL_MY_PLUGIN; RAY_memory_usage_threshold 0.99.
    Fail: NCCL_SOCKET_IFNAMES eth0; RAY_memory_usage_treshold 0.99.
    Level: advisory, because the engine starts.
    Source: NVIDIA/nccl v2.18.6-1 to v2.30.7-1 (NCCL_PARAM, ncclGetEnv); Ray 2.40.0 to 2.60.0, its
    Python files and programs (src/ray/common/ray_config_def.h); core/engines/tables/libraries.json.
    """
    for engine in facts.engines:
        pods = (engine.entry, *(() if engine.worker is None else (engine.worker,)))
        for name in dict.fromkeys(name for pod in pods for name in _of_libraries(pod)):
            pod = next(pod for pod in pods if name in _of_libraries(pod))
            row, library = _LIBRARIES[f"{name.partition('_')[0]}_"]
            known = _names_of_library(row)
            meant = None if name in known else slip_of(name, known)
            if meant is not None and pod.own is not None:
                seen = (
                    f"{title(engine)} has the variable {name}, which no release of {library} "
                    "reads, so it has no effect"
                )
                yield advise(pod.own.path, seen, f"write {meant}")


def _of_libraries(pod: PodFacts) -> list[str]:
    """Return the variables of the libraries in an image whose programs are known."""
    image = None if pod.own is None else pod.own.image
    if not isinstance(image, str):
        return []
    read = read_image(image)
    is_known = read.engine is not None or _OF_RAY in f"{read.repository}"
    return sorted(n for n in pod.engine_variables if n.startswith(tuple(_LIBRARIES)) and is_known)


@cache
def _names_of_library(library: str) -> frozenset[str]:
    package, file = _LIBRARY_TABLES
    rows = json.loads(resources.files(package).joinpath(file).read_text())
    return frozenset(rows[library]["names"])
