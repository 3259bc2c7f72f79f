"""Words of a command, some parts of which are not known: variables, outputs, computed values.

A part that cannot be read now stands in a word as a gap: two private-use characters around a
number that leads to the text as written and the reason. What a shell makes of them is in `bash/`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kthena_components.core.engines.files import Absent, Files, read_file
from kthena_components.core.values.images import Image
from kthena_components.core.values.unknown import (
    OUTPUT_TOKEN,
    MaybeText,
    Unknown,
    Varying,
    is_unresolved,
)

_GAP_OPEN, _GAP_CLOSE = "\ue002", "\ue003"
_MAX_INSERTED = 1 << 21
"""Characters that variables may insert in all. More is no command line: Linux takes 2 MiB."""
_MAX_SHOWN = 80
"""Characters of a word that a message repeats."""

LATE_VARIABLES: Mapping[str, str] = {
    **dict.fromkeys(("ENTRY_ADDRESS", "GROUP_SIZE", "WORKER_INDEX"), "the ModelServing controller"),
    **dict.fromkeys(
        ("LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX"), "LeaderWorkerSet"
    ),
    **dict.fromkeys(
        ("PIPELINE_PARALLEL_SIZE", "RAY_NODE_COUNT", "REQUEST_GPU_COUNT", "TENSOR_PARALLEL_SIZE"),
        "KServe",
    ),
    **dict.fromkeys(("HEAD_SVC", "MODEL_DIR", "MODEL_NAME", "WORKER_SVC"), "KServe"),
    **dict.fromkeys(("DP_SIZE", "DP_SIZE_LOCAL", "TP_SIZE"), "llm-d"),
    **dict.fromkeys(
        ("RBG_LWP_GROUP_SIZE", "RBG_LWP_LEADER_ADDRESS", "RBG_LWP_WORKER_INDEX", "RBG_ROLE_INDEX"),
        "RoleBasedGroup",
    ),
    **dict.fromkeys(("GROVE_PCLQ_POD_INDEX", "GROVE_PCSG_TEMPLATE_NUM_PODS"), "Grove"),
    **dict.fromkeys(("POD_GROUP_INDEX", "POD_GROUP_SIZE"), "AIBrix"),
    "POD_INDEX": "KAITO",
}
"""Variables that a controller adds to the container, and which one. Never in a template's env."""

Hidden = tuple[tuple[str, str], ...]
"""Prefixes of variables that something which cannot be read may set, and what that is."""

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")
_NAME = re.compile(r"[A-Za-z_][-._A-Za-z0-9]*")
_GAP = re.compile(f"{_GAP_OPEN}([0-9]{{1,9}}){_GAP_CLOSE}")
_NUMBER = re.compile(r"INDEX|RANK")
"""Names of late variables that number the pods."""
_MAX_DEPTH = 8


class Variables(Protocol):
    """What a program finds in its environment."""

    def look_up(self, name: str) -> MaybeText | None:
        """Give a variable's value; None when nothing here says that it exists."""
        ...


@dataclass(slots=True)
class Scope:
    """The variables of one container, and the gaps that were left while reading its command."""

    env: Mapping[str, MaybeText]
    """In the order in which Kubernetes sets them."""
    late: Mapping[str, str] = field(default_factory=lambda: LATE_VARIABLES)
    environment: "Variables | None" = None
    """What the program that is read finds in its environment, where a script has started it."""
    in_shell: bool = False
    """Whether a shell has split the words, so that a `$` or a blank in one is meant."""
    files: Files = ()
    """What is mounted in the container."""
    hidden: Hidden = ()
    """Where further variables may come from."""
    image: Image | None = None
    """What the container runs. None: it is not known."""
    absent: list[str] = field(default_factory=list)
    """What is said of files that are named and surely not there."""
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
        """Leave a gap for a text whose value is not known."""
        reason = Unknown(because) if isinstance(because, str) else because
        self._gaps.append((self.show(written), reason))
        return f"{_GAP_OPEN}{len(self._gaps) - 1}{_GAP_CLOSE}"

    def look_up(self, name: str) -> MaybeText | None:
        """Give a variable's value; None when nothing here says that it exists."""
        return self.declared(name) if self.environment is None else self.environment.look_up(name)

    def declared(self, name: str) -> MaybeText | None:
        """Give the value that the container's own fields give to a variable."""
        value = self.env.get(name)
        if value is not None and self._place is not None and self._place_of(name) >= self._place:
            return Unknown(f"{name} is set behind the variable that refers to it")
        if isinstance(value, str):
            return self._expand_env(name, value)
        if value is None and name in self.late:
            kind = Varying if _NUMBER.search(name) else Unknown
            return kind(f"{name} is set by {self.late[name]} when the pod is made")
        if value is None:
            source = next((by for prefix, by in self.hidden if name.startswith(prefix)), None)
            return Unknown(f"{name} may come from {source}") if source else None
        return value

    def _expand_env(self, name: str, value: str) -> MaybeText:
        """Expand the references that an env value may hold to variables that stand before it.

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
        """Give the text of a mounted file; None when it is not known what is mounted there."""
        text = read_file(self.files, path)
        if not isinstance(text, Absent):
            return text
        self.absent.append(text.because)
        return Unknown(text.because)

    def insert(self, name: str, written: str) -> str:
        """Give the text that replaces a variable: its value, or a gap."""
        value = self.declared(name)
        if value is None:
            return self.gap(written, f"{name} has no literal value in this container's env")
        if isinstance(value, Unknown):
            return self.gap(written, value)
        return value if self.fits(value) else self.gap(written, self.no_room)

    def fits(self, *values: str) -> bool:
        """Count what replaces a variable, and tell whether there is room for it."""
        if self._inserted <= _MAX_INSERTED:
            self._inserted += sum(map(len, values)) + len(values)
        return self._inserted <= _MAX_INSERTED

    def read(self, word: str) -> MaybeText:
        """Give a word's text, or why it is not known."""
        match = _GAP.search(word)
        if match is not None:
            return self._of(match)[1]
        if is_unresolved(word):
            return Unknown("it is an output that only the deployment knows")
        return word

    def show(self, word: str) -> str:
        """Write a word as the user wrote it, shortened for a message."""
        shown = OUTPUT_TOKEN.sub("<output>", _GAP.sub(lambda match: self._of(match)[0], word))
        return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"

    def varies(self, word: str) -> bool:
        """Tell whether all that is not known of a word differs from pod to pod."""
        return all(isinstance(self._of(match)[1], Varying) for match in _GAP.finditer(word))

    def _of(self, match: re.Match[str]) -> tuple[str, Unknown]:
        index = int(match[1])
        return self._gaps[index] if index < len(self._gaps) else ("?", Unknown("it is not known"))


def hide_gaps(text: str) -> str:
    """Take out of foreign text the two characters that mark a gap."""
    return text.replace(_GAP_OPEN, "?").replace(_GAP_CLOSE, "?")


def has_gap(word: str) -> bool:
    """Tell whether a word, or a part of it, is not known."""
    return _GAP_OPEN in word or is_unresolved(word)


def expand_kubernetes(text: str, scope: Scope) -> str:
    """Replace `$(NAME)` as the kubelet does in command and args.

    `$$` is one `$`. A reference to a variable that does not exist stays as it is in a pod, but a
    controller may still add the variable, so that it becomes a gap here.
    Source: kubernetes third_party/forked/golang/expansion/expand.go.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        if not _NAME.fullmatch(match[2]):
            return match[0]
        return scope.insert(match[2], match[0])

    # Behind the last `)` no reference can close; looking for it at every `$(` would be quadratic.
    end = text.rfind(")") + 1
    return _REFERENCE.sub(replace, hide_gaps(text[:end])) + hide_gaps(text[end:]).replace("$$", "$")
