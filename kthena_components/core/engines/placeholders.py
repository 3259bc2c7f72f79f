"""Words of a command with unknown parts, and the variables that controllers add to containers.

This is the one list of such variables. A test compares it with what the systems say that their
controllers tell the pods (`tells` of a Kind).

Words of a command with unknown parts: variables, outputs, computed values.

An unknown part is a gap in a word: two private-use characters around a number, which leads to the
text as written and the reason. `bash/` follows scripts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from difflib import get_close_matches
from functools import cache
from typing import Protocol

from kthena_components.core.engines.files import Absent, Files, read_file
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    BLANK_WORD,
    FilledIn,
    MaybeText,
    NotSet,
    OfController,
    SetLater,
    Unknown,
    Varying,
    changed,
    is_unresolved,
    show_tokens,
)

_OF_LWS = ("LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX")
_OF_TPU = ("TPU_NAME", "TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID")
_BY_KTHENA = "the ModelServing controller"
_SET_BY: Mapping[str, tuple[str, ...]] = {
    _BY_KTHENA: ("ENTRY_ADDRESS", "GROUP_SIZE", "WORKER_INDEX"),
    "LeaderWorkerSet": _OF_LWS,
    "LeaderWorkerSet on TPUs": _OF_TPU,
    "KServe": (
        *("PIPELINE_PARALLEL_SIZE", "RAY_NODE_COUNT", "REQUEST_GPU_COUNT", "TENSOR_PARALLEL_SIZE"),
        *("HEAD_SVC", "MODEL_DIR", "MODEL_NAME", "WORKER_SVC"),
    ),
    "llm-d": ("DP_SIZE", "DP_SIZE_LOCAL", "TP_SIZE"),
    "RoleBasedGroup": (
        *("RBG_LWP_GROUP_SIZE", "RBG_LWP_LEADER_ADDRESS", "RBG_LWP_WORKER_INDEX"),
        "RBG_ROLE_INDEX",
    ),
    "Grove": ("GROVE_PCLQ_POD_INDEX", "GROVE_PCSG_TEMPLATE_NUM_PODS"),
    "AIBrix": (
        *("POD_GROUP_INDEX", "POD_GROUP_SIZE", "STORM_SERVICE_NAME"),
        *("ROLE_NAME", "ROLE_REPLICA_INDEX", "ROLE_TEMPLATE_HASH"),
    ),
    "KAITO": ("POD_INDEX",),
    "a plugin of a Volcano Job": ("VC_TASK_INDEX", "VK_TASK_INDEX"),
    "an indexed Job": ("JOB_COMPLETION_INDEX",),
}
"""Controllers with the names of their variables.

Not RANK, MASTER_ADDR and the like: a PyTorchJob and the plugin pytorch of a Volcano Job set them,
and so do scripts and images of pods that no such controller creates.
"""
_PREFIXES: Mapping[str, str] = {
    "GROVE_": "Grove",
    "JOBSET_": "JobSet",
    "LWS_": "LeaderWorkerSet",
    "PET_": "a training Job",
    "RBG_": "RoleBasedGroup",
    **dict.fromkeys(("PODSET_", "ROLESET_", "STORM_SERVICE"), "AIBrix"),
    "VC_": "a plugin of a Volcano Job",
    "VK_": "a plugin of a Volcano Job",
}
"""Prefixes of names; some names contain the name of a task."""
_BEGINNINGS = tuple(_PREFIXES)
_COMPLETE: Mapping[str, frozenset[str]] = {
    "LWS_": frozenset(_OF_LWS),
    "JOBSET_": frozenset(),
    **{
        begin: frozenset(f"{begin}{name}" for name in names.split())
        for begin, names in {
            "GROVE_": "PCS_NAME PCS_INDEX PCSG_NAME PCSG_INDEX PCLQ_NAME PCLQ_POD_INDEX "
            "PCSG_TEMPLATE_NUM_PODS HEADLESS_SERVICE",
            "PODSET_": "NAME",
            "ROLESET_": "NAME INDEX",
            "STORM_SERVICE": "_NAME",
            "RBG_": "GROUP_NAME ROLE_NAME ROLE_INDEX ROLE_INSTANCE_NAME COMPONENT_NAME "
            "COMPONENT_INDEX LWP_LEADER_ADDRESS LWP_WORKER_INDEX LWP_GROUP_SIZE",
        }.items()
    },
}
"""Prefixes whose names are all known: lws api/leaderworkerset/v1/leaderworkerset_types.go,
grove operator/api/common/constants/constants.go, rbg api/workloads/constants/env.go, and aibrix
pkg/controller/constants/stormservice.go."""
_APPENDED = frozenset({_BY_KTHENA, "a plugin of a Volcano Job", "an indexed Job"})
"""Controllers that add their variables behind those of the template: kthena
pkg/model-serving-controller/utils/utils.go addEnvVars; volcano pkg/controllers/job/plugins/svc and
env, OnPodCreate; kubernetes pkg/controller/job/indexed_job_utils.go
addCompletionIndexEnvVariable."""
_KNOWN = frozenset({"KServe", "llm-d"})
"""Controllers whose variables are the author's own sizes and names."""
_NUMBER = regex(r"INDEX|TPU_WORKER_ID")
"""Names of variables that number the pods."""
_NAMED = {name: by for by, names in _SET_BY.items() for name in names}
_LEAST_SIMILARITY = 0.84
"""Similarity of two names, from 0 to 1, from which one counts as the other misspelled."""
_GAP_OPEN, _GAP_CLOSE = "\ue002", "\ue003"
_MAX_INSERTED = 1 << 21
"""Maximum characters that variables insert in total: Linux allows 2 MiB for a command line."""
_MAX_SHOWN = 120
"""Maximum characters of a word in a message: as many as the address of a pod of Grove has."""

Hidden = tuple[tuple[str, str], ...]
"""Prefixes of variables that an unreadable source may set, with that source."""

_REFERENCE = regex(r"\$(?:(\$)|\(([^)]*)\))")
_NAME = regex(r"[A-Za-z_][-._A-Za-z0-9]*")
_GAP = regex(f"{_GAP_OPEN}([0-9]{{1,9}}){_GAP_CLOSE}")
_AFTER_NAME = regex(r"(?:\.[-.a-z0-9]*)?(?::[0-9]+)?")
"""What may follow the name of a pod in its address: a domain, a port."""
_MAX_DEPTH = 8


def misspelled(name: str, known: Iterable[str] = tuple(_NAMED)) -> str | None:
    """Return the variable that a name has with a letter or two wrong, missing or too many.

    The first words of both are the same, because NODE_INDEX is not POD_INDEX.
    """
    return None if name in _NAMED else _nearest(name, tuple(known))


@cache
def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    own = name.partition("_")[0]
    like = [k for k in known if k.partition("_")[0] == own and abs(len(k) - len(name)) <= 1]
    near = [] if name in known else get_close_matches(name, like, n=1, cutoff=_LEAST_SIMILARITY)
    return near[0] if near else None


def is_of_none(name: str) -> bool:
    """Return whether a name has a controller's prefix, but is none of its variables."""
    return any(name.startswith(begin) and name not in own for begin, own in _COMPLETE.items())


def follows_env(name: str) -> bool:
    """Return whether a controller adds a variable behind the env of the template.

    Kubernetes then leaves a reference in that env as it is.
    """
    return name in LATE_VARIABLES and LATE_VARIABLES[name] in _APPENDED


class _Late(Mapping[str, str]):
    """Each variable with its controller. Iteration gives those that are known by their names."""

    def __getitem__(self, name: str) -> str:
        if name not in self:
            raise KeyError(name)
        begun = (by for prefix, by in _PREFIXES.items() if name.startswith(prefix))
        return _NAMED.get(name) or next(begun)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in _NAMED or name.startswith(_BEGINNINGS))

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMED)

    def __len__(self) -> int:
        return len(_NAMED)


LATE_VARIABLES: Mapping[str, str] = _Late()
"""Variables that a controller adds to the container, with its name. Never in a template's env."""


def _names_itself(name: str, value: MaybeText) -> bool:
    """Return whether a variable's value is, or may be, a placeholder of its own name."""
    itself = isinstance(value, str) and (f"${{{name}}}" in value or value == f"${name}")
    return itself or isinstance(value, FilledIn)


def numbers_pods(name: str) -> bool:
    """Return whether a variable of a controller has another value in each pod."""
    return _NUMBER.search(name) is not None


class Variables(Protocol):
    """The environment of a program."""

    def look_up(self, name: str) -> MaybeText | None:
        """Return a variable's value; None if no known source sets it."""
        ...


@dataclass(slots=True)
class Scope:
    """The variables of one container, and the gaps left while reading its command."""

    env: Mapping[str, MaybeText]
    """In the order in which Kubernetes sets them."""
    late: Mapping[str, str] = field(default_factory=lambda: LATE_VARIABLES)
    environment: "Variables | None" = None
    """The environment of the current program, if a script starts it. None: the container's."""
    in_shell: bool = False
    """Whether a shell has split the words: a `$` or a blank in a word is then intended."""
    files: Files = ()
    """The container's mounted files."""
    hidden: Hidden = ()
    """Other sources of variables."""
    image: Image | None = None
    """The container's image. None: unknown."""
    absent: list[str] = field(default_factory=list)
    """Messages about named files that definitely do not exist."""
    no_room: Unknown = field(
        default=Unknown(f"variables insert more than {_MAX_INSERTED} characters"), init=False
    )
    _gaps: list[tuple[str, Unknown]] = field(default_factory=list)
    _expanded: dict[str, str] = field(default_factory=dict)
    _inserted: int = 0
    _depth: int = 0
    _places: dict[str, int] = field(default_factory=dict)
    _place: int | None = None

    def gap(self, written: str, because: Unknown | str) -> str:
        """Leave a gap for a string of unknown value."""
        reason = Unknown(because) if isinstance(because, str) else because
        self._gaps.append((self.show(written), reason))
        return f"{_GAP_OPEN}{len(self._gaps) - 1}{_GAP_CLOSE}"

    @property
    def names(self) -> frozenset[str]:
        """The variables that only a shell or Kubernetes expands.

        Not those of which a tool such as envsubst fills in the value, as it would in the argument,
        nor those that a person can know: KServe sets a MODEL_NAME, and so does an author's shell.
        """
        own = (name for name, value in self.env.items() if not _names_itself(name, value))
        return frozenset((*own, *(name for name, by in self.late.items() if by not in _KNOWN)))

    def is_named(self, name: str) -> bool:
        """Return whether the container's fields or a controller set a variable."""
        return name in self.env or name in self.late

    def look_up(self, name: str) -> MaybeText | None:
        """Return a variable's value; None if no known source sets it."""
        return self.declared(name) if self.environment is None else self.environment.look_up(name)

    def declared(self, name: str) -> MaybeText | None:
        """Return the value that the container's own fields give to a variable."""
        value = self.env.get(name)
        if value is not None and self._place is not None and self._place_of(name) >= self._place:
            text = f"{name} is set after the variable that refers to it"
            # Another source may set it before all of these.
            before = name in self.late or any(name.startswith(prefix) for prefix, _ in self.hidden)
            return Unknown(text) if before else SetLater(text, name)
        if isinstance(value, str):
            return self._expand_env(name, value)
        hidden = None
        if value is None and self.hidden:
            hidden = next((by for prefix, by in self.hidden if name.startswith(prefix)), None)
        if value is None and name in self.late:
            # Which controller creates the pod is not known here: maybe none that sets it.
            own = misspelled(name)
            does = f"sets {own}" if own else "does"
            text = f"no env sets {name}; {self.late[name]} {does} in the pods that it creates"
            elsewhere = hidden is not None
            kind = Varying if numbers_pods(name) else OfController
            return kind(text, name, elsewhere, self._place is not None)
        return Unknown(f"{name} may come from {hidden}") if hidden else value

    def _expand_env(self, name: str, value: str) -> MaybeText:
        """Expand references in an env value to variables that are set before it.

        Source: kubernetes pkg/kubelet/kubelet_pods.go makeEnvironmentVariables.
        """
        if name not in self._expanded:
            if self._depth == _MAX_DEPTH:
                return Unknown(f"{name} refers to other variables more than {_MAX_DEPTH} deep")
            before, self._place = self._place, self._place_of(name)
            self._depth += 1
            self._expanded[name] = expand_kubernetes(value, self)
            self._depth -= 1
            self._place = before
        return self._expanded[name]

    def _place_of(self, name: str) -> int:
        if not self._places:
            self._places.update((known, place) for place, known in enumerate(self.env))
        return self._places[name]

    def file(self, path: str) -> MaybeText | None:
        """Return the text of a mounted file; None if the mounts there are unknown."""
        text = read_file(self.files, path)
        if not isinstance(text, Absent):
            return text
        self.absent.append(text.because)
        return Unknown(text.because)

    def insert(self, name: str, written: str) -> str:
        """Return the text that replaces a variable: its value, or a gap."""
        value = self.declared(name)
        if value is None:
            text = f"{name} has no literal value in this container's env"
            return self.gap(written, NotSet(text, name))
        if isinstance(value, Unknown):
            return self.gap(written, value)
        return value if self.fits(value) else self.gap(written, self.no_room)

    def fits(self, *values: str) -> bool:
        """Count what replaces a variable, and return whether it fits into the limit."""
        if self._inserted <= _MAX_INSERTED:
            self._inserted += sum(map(len, values)) + len(values)
        return self._inserted <= _MAX_INSERTED

    def read(self, word: str) -> MaybeText:
        """Return a word's text, or why it is unknown."""
        match = None if word.isascii() else _GAP.search(word)
        if match is not None:
            found = self._of(match)[1]
            rest = word[match.end() :]
            return found if not match.start() and _AFTER_NAME.fullmatch(rest) else changed(found)
        if BLANK_WORD in word:
            return Unknown("it is a placeholder, to be filled in first")
        if is_unresolved(word):
            return Unknown("its value is a Pulumi Output, which is known only after the deployment")
        return word

    def show(self, word: str) -> str:
        """Write a word as the user wrote it, shortened for a message."""
        shown = word
        if not word.isascii():
            shown = show_tokens(_GAP.sub(lambda match: self._of(match)[0], word))
        return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"

    def varies(self, word: str) -> bool:
        """Return whether every gap of a word differs between pods."""
        return all(isinstance(self._of(match)[1], Varying) for match in _GAP.finditer(word))

    def _of(self, match: re.Match[str]) -> tuple[str, Unknown]:
        index = int(match[1])
        return self._gaps[index] if index < len(self._gaps) else ("?", Unknown("it is not known"))


def hide_gaps(text: str) -> str:
    """Remove the two characters that mark a gap from foreign text."""
    return text if text.isascii() else text.replace(_GAP_OPEN, "?").replace(_GAP_CLOSE, "?")


def has_gap(word: str) -> bool:
    """Return whether a word is wholly or partly unknown."""
    return _GAP_OPEN in word or is_unresolved(word)


def expand_kubernetes(text: str, scope: Scope) -> str:
    """Replace `$(NAME)` as the kubelet does in command and args.

    `$$` is one `$`. A pod keeps a reference to a missing variable as it is, but a controller may
    still add the variable: it becomes a gap here. Source: kubernetes
    third_party/forked/golang/expansion/expand.go.
    """
    if "$" not in text:
        return hide_gaps(text)

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        if not _NAME.fullmatch(match[2]):
            return match[0]
        return scope.insert(match[2], match[0])

    # Behind the last `)` no reference can close; looking for it at every `$(` would be quadratic.
    end = text.rfind(")") + 1
    return _REFERENCE.sub(replace, hide_gaps(text[:end])) + hide_gaps(text[end:]).replace("$$", "$")


# Reads the variables that set what the command line of an engine leaves open.


NETWORK_VARIABLES = (
    *("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
    *("VLLM_HOST_IP", "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_PORT"),
    "SGLANG_HOST_IP",
)
"""Variables with the interfaces, addresses and ports at which processes meet."""


def visible_devices(scope: Scope) -> MaybeText | None:
    """Return CUDA_VISIBLE_DEVICES; None if it is not stated."""
    return stated_variable(scope, "CUDA_VISIBLE_DEVICES")


def stated_variable(scope: Scope, name: str) -> MaybeText | None:
    """Return a variable's value; None if only an unreadable source may set it."""
    value = scope.look_up(name)
    if isinstance(value, str):
        return scope.read(value)
    return value if isinstance(value, Unknown) and name in scope.env else None
