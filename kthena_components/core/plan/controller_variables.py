"""What a controller tells the pods of an engine, rewritten to what Kthena's variables say.

Commands get Kthena's variables. Values of env get LeaderWorkerSet's: Kubernetes resolves a variable
there only after its definition, and only these are put first (core/plan/lws_variables.py).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.templates import Template
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import is_name, mapping, sequence
from kthena_components.core.values.regex import regex

_KINDS = ("initContainers", "containers")
_COMMANDS = ("command", "args")
_FIRST = {same: name for name, same in naming.LWS_ENV.items()}
"""LeaderWorkerSet's variable by Kthena's."""
_ARITHMETIC = regex(r"\$\(\((.*?)\)\)")
_SHIFTED = f"{naming.WORKER_INDEX} - 1"
_HOST = r"\bHOSTNAME\b|\$\(hostname\b|`hostname\b|\bgethostname\b"
_FIELD = regex(r"metadata\.(labels|annotations)\['([^']*)'\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVariables:
    """What the pods of an engine learn from a controller, by variables and by names."""

    size: tuple[str, ...] = ()
    """Variables with the number of its pods."""
    leader: tuple[str, ...] = ()
    """Variables with the address of its first pod."""
    rank: tuple[str, ...] = ()
    """Variables with the number of a pod in it, from 0."""
    rank_fields: tuple[str, ...] = ()
    """Paths of fields of a pod with that number, for `fieldRef`."""
    ordinal: tuple[str, ...] = ()
    """Variables with the number of a pod among those of its template, from 0."""
    fields: tuple[str, ...] = ()
    """Paths of fields of a pod with that number, for `fieldRef`."""
    numbered_names: bool = False
    """Whether the names of pods end with that number."""
    addresses: tuple[str, ...] = ()
    """Patterns of strings that are the address of its first pod."""
    others: tuple[str, ...] = ()
    """Prefixes of other variables that the controller sets."""
    exactly: tuple[str, ...] | None = None
    """All variables that it sets, and prefixes of them, if fields of the object decide about that.
    None: those above."""


NOTHING = PodVariables()
KTHENA_POD_VARIABLES = PodVariables(
    size=(naming.GROUP_SIZE,), leader=(naming.ENTRY_ADDRESS,), rank=(naming.WORKER_INDEX,)
)
LWS_POD_VARIABLES = PodVariables(
    size=(naming.LWS_GROUP_SIZE,),
    leader=(_FIRST[naming.ENTRY_ADDRESS],),
    rank=(_FIRST[naming.WORKER_INDEX],),
    rank_fields=(f"metadata.labels['{naming.LWS_WORKER_INDEX_LABEL}']",),
    others=("LWS_",),
)


class _Change(NamedTuple):
    """A name or a pattern, and what is written for it."""

    pattern: str
    ours: str
    """The variable that replaces it."""
    in_command: Callable[[str], str]
    in_env: str = ""
    """What replaces it in values of env; empty for nothing."""


@dataclass(slots=True)
class Rewritten:
    """A template with Kthena's variables."""

    template: Template
    notes: list[str] = field(default_factory=list)
    """What was rewritten, as `JOB_INDEX to WORKER_INDEX in spec.containers[0]`."""
    unset: list[tuple[str, str]] = field(default_factory=list)
    """Paths of containers, and what each uses that only the controller gives to its pods."""


def reference(name: str) -> str:
    """Return the pattern of a reference to a variable, by Kubernetes or in a script."""
    name = re.escape(name)
    return rf"\$(?:\({name}\)|\{{{name}\}}|{name}\b)"


def rewrite(template: Template, variables: PodVariables, *, after: int, pods: int) -> Rewritten:
    """Rewrite the variables that a controller sets in the pods of a template.

    Args:
        variables: What the controller sets in them.
        after: Pods of the engine before those of this template: 1 for separate workers.
        pods: Pods of the engine. With 1, a number among the copies of an engine has no counterpart.
    """
    spec, result = dict(mapping(template.get("spec"))), Rewritten({})
    metadata = mapping(template.get("metadata"))
    for kind in _KINDS:
        if isinstance(spec.get(kind), list):
            spec[kind] = spec[kind].copy()
            for index, item in enumerate(spec[kind]):
                if isinstance(item, Mapping):
                    at = f"spec.{kind}[{index}]"
                    container = _Container(at, mapping(item), metadata, variables, after, pods)
                    spec[kind][index], notes, unset = container.rewritten(result.notes)
                    result.notes += notes
                    result.unset += [(at, name) for name in unset]
    result.template = {**template, "spec": spec}
    return result


@dataclass(slots=True)
class _Container:
    """A container of a template, while it is rewritten."""

    at: str
    """Its path in the template."""
    stated: Mapping[str, Any]
    metadata: Mapping[str, Any]
    """The metadata of the template."""
    variables: PodVariables
    after: int
    pods: int
    notes: list[str] = field(default_factory=list)

    @property
    def env(self) -> list[Mapping[str, Any]]:
        return [mapping(entry) for entry in sequence(self.stated.get("env"))]

    @property
    def numbers(self) -> list[str]:
        """Variables with the number of the pod, which it reads from its own fields."""
        return self.reading(*self.variables.fields)

    @property
    def names(self) -> list[str]:
        """Variables with the name of the pod."""
        return ["HOSTNAME", *self.reading("metadata.name")]

    @property
    def own(self) -> set[str]:
        """The other variables that it sets itself: they are left as they are."""
        return {str(e.get("name")) for e in self.env} - {*self.numbers, *self.names}

    def reading(self, *paths: str) -> list[str]:
        """Return the variables that are set from some fields of the pod."""
        names = [e.get("name") for e in self.env if _field_of(e) in paths]
        return [name for name in names if isinstance(name, str) and name]

    def rewritten(self, before: list[str]) -> tuple[dict[str, Any], list[str], list[str]]:
        """Return the container with Kthena's variables, its notes, and its names for `unset`.

        Args:
            before: The notes on other containers. A removed variable is not noted once more.
        """
        changes = list(self.changes())
        made = {k: self.changed(v, changes, k in _COMMANDS) for k, v in self.stated.items()}
        env = [self.changed_entry(entry, changes) for entry in self.env]
        texts = _texts({**made, "env": env})
        gone = self.unused_numbers(texts)
        kept = [entry for entry in env if entry.get("name") not in gone]
        noted = {note.partition(" ")[0] for note in (*before, *self.notes)}
        self.tell(f"{n} to {naming.WORKER_INDEX} in {self.at}.env" for n in gone if n not in noted)
        unset = (*self.unset(texts), *self.hidden_fields(kept), *self.pod_names(texts))
        made.pop("env", None)
        return ({**made, "env": kept} if kept else made), self.notes, list(dict.fromkeys(unset))

    def unused_numbers(self, texts: list[str]) -> list[str]:
        """Return the variables with the number of the pod that no string mentions any more."""
        numbers = self.numbers if self.pods > 1 else []
        return [n for n in numbers if not any(re.search(_word(n), text) for text in texts)]

    def pod_names(self, texts: list[str]) -> Iterator[str]:
        """Yield what reads the name of the pod, from which a script may take its number."""
        if self.pods > 1 and "HOSTNAME" not in self.own:
            pattern = "|".join([_HOST, *map(_word, self.names)])
            for text in texts:
                yield from (match[0] for match in re.finditer(pattern, text))

    def changes(self) -> Iterator[_Change]:
        """Yield what is rewritten; names that the container sets itself are left as they are."""
        given, own, index = self.variables, self.own, naming.WORKER_INDEX
        same = {
            naming.GROUP_SIZE: given.size,
            naming.ENTRY_ADDRESS: given.leader,
            index: given.rank,
        }
        for ours, variables in same.items():
            for name in (v for v in variables if v not in own):
                yield _Change(_word(name), ours, _renaming(name, ours), f"$({_FIRST[ours]})")
        ours = naming.ENTRY_ADDRESS
        for pattern in given.addresses:
            yield _Change(pattern, ours, _writing(pattern, f"$({ours})"), f"$({_FIRST[ours]})")
        yield from self.number_changes() if self.pods > 1 else ()

    def number_changes(self) -> Iterator[_Change]:
        """Yield how the number of a pod among the pods of its template is rewritten."""
        variables, own, index = self.variables, self.own, naming.WORKER_INDEX
        for name in (v for v in (*variables.ordinal, *self.numbers) if v not in own):
            how = _shifting(name) if self.after else _renaming(name, index)
            yield _Change(_word(name), index, how, "" if self.after else f"$({_FIRST[index]})")
        for name in self.names if variables.numbered_names else ():
            pattern = rf"\$\{{{re.escape(name)}##\*-\}}"
            yield _Change(pattern, index, _writing(pattern, _number(self.after)))

    def changed(self, value: Any, changes: list[_Change], is_command: bool) -> Any:
        """Rewrite the commands of a container, including its probes and hooks."""
        if isinstance(value, Mapping):
            return {k: self.changed(v, changes, k in _COMMANDS) for k, v in value.items()}
        if isinstance(value, list):
            return [self.changed(item, changes, is_command) for item in value]
        if not isinstance(value, str) or not is_command:
            return value
        for change in changes:
            before, value = value, change.in_command(value)
            self.note(change, before, value, self.at)
        return value

    def changed_entry(self, entry: Mapping[str, Any], changes: list[_Change]) -> dict[str, Any]:
        value = entry.get("value")
        for change in (c for c in changes if c.in_env and isinstance(value, str)):
            is_name = change.pattern.startswith(r"\b")
            pattern = rf"\$\({change.pattern}\)" if is_name else change.pattern
            before, value = value, _writing(pattern, change.in_env)(str(value))
            self.note(change, str(before), value, f"{self.at}.env")
        return {**entry, "value": value} if "value" in entry else dict(entry)

    def note(self, change: _Change, before: str, after: str, at: str) -> None:
        match = re.search(change.pattern, before)
        if before != after and match is not None:
            self.tell([f"{match[0]} to {change.ours} in {at}"])

    def tell(self, notes: Iterable[str]) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    def unset(self, texts: list[str]) -> Iterator[str]:
        """Yield the variables that are still used and that only the controller sets."""
        variables, own = self.variables, self.own
        names = (*variables.size, *variables.leader, *variables.rank, *variables.ordinal)
        patterns = [*map(_word, names)] + [rf"\b{p}\w*" for p in variables.others]
        for text in texts:
            for pattern in patterns:
                yield from (m[0] for m in re.finditer(pattern, text) if m[0] not in own)

    def hidden_fields(self, env: list[dict[str, Any]]) -> Iterator[str]:
        """Yield labels and annotations that only a controller gives to the pods."""
        for path in map(_field_of, env):
            match = _FIELD.fullmatch(path) if isinstance(path, str) else None
            if match is not None and match[2] not in mapping(self.metadata.get(match[1])):
                yield str(path)


def _field_of(entry: Mapping[str, Any]) -> object:
    return mapping(mapping(entry.get("valueFrom")).get("fieldRef")).get("fieldPath")


def _word(name: str) -> str:
    """Return the pattern of a name, which an object may choose, as a word."""
    return rf"\b{re.escape(name)}\b"


def _renaming(name: str, ours: str) -> Callable[[str], str]:
    return lambda text: re.sub(_word(name), ours, text)


def _writing(pattern: str, ours: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, lambda _: ours, text)


def _number(after: int) -> str:
    return f"$(({_SHIFTED}))" if after else f"${{{naming.WORKER_INDEX}}}"


def _shifting(name: str) -> Callable[[str], str]:
    """Write the number among the workers as the number in the engine less 1, in a script."""
    name = re.escape(name)
    bare = re.compile(rf"(?<![$\w{{]){name}\b")
    reference = re.compile(rf"\$\{{{name}\}}|\${name}\b")

    def inside(match: re.Match[str]) -> str:
        return f"$(({bare.sub(f'({_SHIFTED})', match[1])}))"

    return lambda text: reference.sub(_number(1), _ARITHMETIC.sub(inside, text))


def _texts(container: Mapping[str, Any]) -> list[str]:
    """List the strings of a container that may mention a variable."""
    values = [str(mapping(e).get("value") or "") for e in sequence(container.get("env"))]
    return [*values, *_commands(container, is_command=False)]


def _commands(value: Any, *, is_command: bool) -> Iterator[str]:
    """List the strings in commands, arguments and probes of a template, at any depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _commands(item, is_command=key in _COMMANDS)
    elif isinstance(value, list):
        for item in value:
            yield from _commands(item, is_command=is_command)
    elif isinstance(value, str) and is_command:
        yield value


def first_pod(host: str, domain: object, namespace: object) -> str:
    """Return the pattern of a pod's address: `chat-0.chat`, with more of its domain or less."""
    inside = re.escape(str(namespace)) if is_name(namespace) else "default"
    rest = rf"(?:\.{inside}(?:\.svc(?:\.cluster\.local)?)?)?"
    return rf"(?<![\w.-]){re.escape(host)}\.{re.escape(str(domain))}{rest}(?![\w-])"
