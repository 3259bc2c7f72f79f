"""Reads a container's inputs, and what it starts: its command line, or why that is not known.

Unknown inputs stay unknown, with the reason. Secrets are never read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.engines import (
    CommandFacts,
    Files,
    Hidden,
    derived_entrypoint,
    image_entrypoint,
    read_command,
    unread_script,
)
from kthena_components.core.engines.facts import ALL_GPUS
from kthena_components.core.engines.shapes import split_command
from kthena_components.core.facts.claims import read_claims
from kthena_components.core.facts.container import read_volumes, sidecars, visible_gpus
from kthena_components.core.facts.context import NO_CONTEXT, ConfigMap, Context
from kthena_components.core.facts.devices import name_in_pod
from kthena_components.core.facts.files import MissingKey, PodVolumes, read_files, why_missing
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    PREVIEW_LENGTH,
    UNKNOWN_WORD,
    FilledIn,
    MaybeText,
    NodeAddress,
    OwnAddress,
    OwnName,
    Unknown,
    Varying,
    is_unresolved,
)

_PLACES = frozenset({naming.ENTRY_ADDRESS, naming.WORKER_INDEX})
"""Variables that differ between pods: facts are about all pods of a template."""

_ADDRESSES = frozenset(
    {*("metadata.name", "status.podIP"), "metadata.labels['statefulset.kubernetes.io/pod-name']"}
)
_OF_NODE = frozenset({"status.hostIP"})
_OF_EACH_POD = frozenset({"metadata.uid", "spec.nodeName"})

METADATA_FIELD = regex(r"metadata\.(labels|annotations)\['([^']+)'\]")
"""The path of a label or an annotation."""
_OF_CONTROLLERS = regex(
    r"(?:(?:^|(?<!^app)\.)(?:k8s|kubernetes|x-k8s|ray|grove|kserve|llmaz)\.io|volcano\.sh|kaito\.sh"
    r"|nvidia\.com|kubeflow\.org|inftyai\.com|aibrix\.ai|matrixinfer\.ai)/"
    r"|^(?:job-name|controller-uid|controller-revision-hash|pod-template-(?:hash|generation))$"
)
"""Labels and annotations that a controller may set on its pods, whatever the template states."""

HOST = "HOSTNAME"
"""The variable with the name of a pod's host, which a shell also sets."""
_VARIABLE = regex(r"[-._A-Za-z][-._A-Za-z0-9]*")

_MOST = 100
"""Maximum number of variable sources read per container."""


@dataclass(slots=True)
class Inputs:
    """The inputs of one container."""

    env: dict[str, MaybeText] = field(default_factory=dict)
    """Variables in the order in which Kubernetes sets them, with `$(NAME)` not yet expanded."""
    hidden: Hidden = ()
    """Other sources of variables."""
    files: Files = ()
    missing: list[MissingKey] = field(default_factory=list)
    places: dict[str, MaybeText] = field(default_factory=dict)
    """Values of variables that differ between pods, which are not in `env`."""

    def set(self, name: str, value: MaybeText) -> None:
        """Set a variable; an earlier one of the same name moves to the end."""
        found = self.places if name in _PLACES else self.env
        found.pop(name, None)
        found[name] = value

    def drop_places(self) -> None:
        """Drop variables that have the values of `places` under LeaderWorkerSet's names."""
        for name, same in naming.LWS_ENV.items():
            if same in self.places and self.env.get(name) == self.places[same]:
                del self.env[name]

    def hide(self, prefix: str, source: str) -> None:
        """Record that an unreadable source may set variables with a prefix."""
        for name in [name for name in self.env if name.startswith(prefix)]:
            self.set(name, Unknown(f"{name} may come from {source}"))
        self.hidden = (*self.hidden, (prefix, source))

    def miss(self, path: str, found: ConfigMap, key: object) -> None:
        """Record a missing key, without which the container does not start."""
        if isinstance(key, str) and not is_unresolved(key):
            self.missing.append(MissingKey(path=path, because=why_missing(found, key)))

    def misspell(self, path: str, found: Unknown, meant: str | None) -> None:
        """Record a ConfigMap that is missing, if another one has a similar name."""
        if meant is not None:
            because = f"{found.because}, but '{meant}' is"
            self.missing.append(MissingKey(path=path, because=because, meant=meant))


def read_inputs(
    container: Mapping[str, Any], pod: PodVolumes, path: str, injected: Mapping[str, str]
) -> Inputs:
    """Read a container's inputs, whatever its fields contain.

    envFrom comes first, where later sources override earlier ones; env overrides both. Only values
    in env are expanded, each with the variables before it.

    Args:
        pod: The volumes that its pod's containers share.
        injected: Variables that a controller adds to all containers.

    Source: kubernetes pkg/kubelet/kubelet_pods.go makeEnvironmentVariables.
    """
    context, given = pod.context, Inputs()
    for name, value in injected.items():
        given.env[name] = value
    sources, items = sequence(container.get("envFrom")), sequence(container.get("env"))
    for index, source in enumerate(sources[:_MOST]):
        _env_from(given, source, context, f"{path}.envFrom[{index}]")
    if len(sources) > _MOST:
        given.hide("", f"envFrom, of which {_MOST} sources are read")
    if is_unresolved(container.get("envFrom")):
        given.hide("", "envFrom, which is not known yet")
    if is_unresolved(container.get("env")):
        given.hide("", "env, which is not known yet")
    late = [
        i
        for i, item in enumerate(items)
        if is_unresolved(item) or is_unresolved(mapping(item).get("name"))
    ]
    for index, item in enumerate(items):
        if index in late[-1:]:
            given.hide("", "env, a part of which is not known yet")
        _env(given, mapping(item), pod, f"{path}.env[{index}]")
    given.env = {**injected, **{k: v for k, v in given.env.items() if k not in injected}}
    given.drop_places()
    if container.get("volumeMounts"):
        given.files, missing = read_files(container, pod, path)
        given.missing += missing
    return given


def _env_from(given: Inputs, source: object, context: Context, path: str) -> None:
    """Add all keys of a ConfigMap; an unreadable source hides the variables that it may set."""
    reference, prefix = mapping(source).get("configMapRef"), mapping(source).get("prefix")
    start = prefix if isinstance(prefix, str) and not is_unresolved(prefix) else ""
    found = context.find(reference) if isinstance(reference, Mapping) else None
    if isinstance(found, ConfigMap) and found.gap is None and not is_unresolved(prefix):
        for key in found.data:
            if isinstance(key, str) and _VARIABLE.fullmatch(start + key):
                given.set(start + key, _literal(found.text(key)))
        return
    if isinstance(found, Unknown):
        given.misspell(f"{path}.configMapRef.name", found, context.slip_of(mapping(reference)))
    given.hide(start, f"envFrom, where {_why(source, found)}")


def _why(source: object, found: ConfigMap | Unknown | None) -> str:
    """Explain why a source of variables is unknown."""
    secret = mapping(mapping(source).get("secretRef")).get("name")
    if isinstance(secret, str) and not is_unresolved(secret):
        return f"Secret '{secret[:63]}' is not read"
    if isinstance(found, ConfigMap):
        return f"{found.title} is not known yet"
    return found.because if found else "a source is not known yet"


def _env(given: Inputs, item: Mapping[str, Any], pod: PodVolumes, path: str) -> None:
    """Add one entry of `env` to the inputs, with the text of a ConfigMap's key if it is checked."""
    context = pod.context
    name, value = item.get("name"), item.get("value")
    if not isinstance(name, str) or is_unresolved(name):
        return
    reference = mapping(item.get("valueFrom")).get("configMapKeyRef")
    late = f"the value of {name} is not in the manifest"
    if isinstance(value, str) and (value or not isinstance(reference, Mapping)):
        given.set(name, _before_apply(value, late) if is_unresolved(value) else value)
    elif not isinstance(reference, Mapping):
        given.set(name, _of_pod(mapping(item.get("valueFrom")), pod.metadata, late))
    else:
        key, found = reference.get("key"), context.find(reference)
        if isinstance(found, Unknown):
            given.set(name, Unknown(f"{late}: {found.because}"))
            at = f"{path}.valueFrom.configMapKeyRef.name"
            given.misspell(at, found, context.slip_of(reference))
        elif not isinstance(key, str) or is_unresolved(key):
            given.set(name, Unknown(f"the key of {name} in {found.title} is not known yet"))
        else:
            given.set(name, _literal(found.text(key)))
            if not found.has(key) and reference.get("optional") is not True:
                given.miss(f"{path}.valueFrom.configMapKeyRef.key", found, key)


_AT_START = regex(r"\$\{?(?:ENTRY_ADDRESS|(?:LWS|RBG_LWP|GROVE)_[A-Z_]+)\b")
"""A variable in the form of a shell that a controller sets when it creates a pod."""


def _before_apply(value: str, late: str) -> MaybeText:
    """Return a text with a placeholder as unknown, because a tool replaces it before it is applied.

    No tool can replace what is known only when pods start: ${LWS_LEADER_ADDRESS} stays as it is,
    because Kubernetes replaces $(NAME) only.
    """
    return _literal(value) if _AT_START.search(value) else FilledIn(late)


def _of_pod(source: Mapping[str, Any], metadata: object, late: str) -> MaybeText:
    """Return a label or annotation of the template, or how a value differs between pods."""
    path = mapping(source.get("fieldRef")).get("fieldPath")
    if not isinstance(path, str):
        return Unknown(late)
    found = METADATA_FIELD.fullmatch(path)
    if found and not _OF_CONTROLLERS.search(found[2]):
        value = mapping(mapping(metadata).get(found[1])).get(found[2])
        if isinstance(value, str):
            return FilledIn(late) if is_unresolved(value) else _literal(value)
    if path in _ADDRESSES:
        return OwnAddress(late) if path == "status.podIP" else OwnName(late)
    if path in _OF_NODE:
        return NodeAddress(late)
    return Varying(late) if path in _OF_EACH_POD or "index" in path else Unknown(late)


def _literal(text: MaybeText) -> MaybeText:
    """Escape a string so that Kubernetes' expansion leaves it unchanged."""
    return text.replace("$", "$$") if isinstance(text, str) else text


def read_argv(container: Mapping[str, Any]) -> list[str]:
    """Return a container's command and args in one list, or what its image starts."""
    command, args = _words(container.get("command")), _words(container.get("args"))
    if not command:
        image = str(container.get("image", ""))
        command = [*(image_entrypoint(image) or derived_entrypoint(image, args))]
    return [*command, *args]


def _words(value: object) -> list[str]:
    if is_unresolved(value):
        # The whole list is unknown: it may contain the model and any flag.
        return [UNKNOWN_WORD, UNKNOWN_WORD]
    items = sequence(value)
    is_plain = {*map(type, items)} <= _TEXT and "".join(items).isascii()
    if is_plain and PREVIEW_LENGTH not in {*map(len, items)}:  # most, and quicker to tell
        return [*items]
    return [text_of(item) for item in items if isinstance(item, (str, int, float))]


_TEXT = frozenset({str})
_REMEMBERED = 8_192
"""Maximum length of a command line that is cached, with its facts."""


class Started(NamedTuple):
    """What a container starts."""

    command: CommandFacts | None
    gap: Unknown | None
    """Why a command cannot be read."""
    given: Inputs
    words: Sequence[str]
    """The command and args, or what the image starts."""


def read_commands(
    template: object, env: Mapping[str, str], context: Context = NO_CONTEXT
) -> list[CommandFacts | None]:
    """Read only the command lines of the pods that `read_pods` would return."""
    spec = mapping(template).get("spec")
    items = mapping(spec).get("containers")
    if any(map(is_unresolved, (template, spec, items, *sequence(items)))):
        return [None]
    spec = context.limits.fill(mapping(spec), context.namespace)
    metadata = mapping(template).get("metadata")
    volumes = PodVolumes(read_volumes(spec), context, spec, metadata)
    found = [read_started(mapping(item), volumes, "", env) for item in sequence(items)]
    beside = (read_started(sidecar, volumes, "", env) for sidecar, _ in sidecars(spec, ""))
    found += [start for start in beside if start.command and start.command.engine]
    return [
        found[i].command for i in engine_places([(each.command, each.gap) for each in found])
    ] or [None]


def read_started(
    container: Mapping[str, Any], pod: PodVolumes, path: str, env: Mapping[str, str]
) -> Started:
    """Read what a container starts, with the variables that will be injected into it."""
    words, given = tuple(read_argv(container)), read_inputs(container, pod, path, env)
    # Without a command the image decides what gets the words; it may well be a shell.
    split = split_command(words) if container.get("command") else None
    argv = words if split is None else split.words
    read = _command if sum(map(len, argv)) <= _REMEMBERED else _command.__wrapped__
    image, folder = _text(container.get("image")), _text(container.get("workingDir"))
    variables = _without_host(given, argv)
    command = read(argv, tuple(variables.items()), given.hidden, given.files, image, folder=folder)
    name = name_in_pod(container)
    if command is not None and split is not None:
        command = replace(command, problems=(split.problem, *command.problems))
    if command is not None and command.tensor == ALL_GPUS:
        command = replace(
            command, tensor=visible_gpus(container, read_claims(container, pod.spec, pod.context))
        )
    gap = None if command is None or command.engine else command.hidden
    if command is None and any(map(is_unresolved, argv)):
        gap = Unknown(f"the command line of container '{name}' is not known yet")
    elif command is None and argv and is_unresolved(container.get("image")):
        gap = Unknown(f"the image of container '{name}' decides what starts, and is not known yet")
    elif command is None and given.files:
        gap = unread_script(argv, given.files)
    return Started(command, gap, given, words)


def _without_host(given: Inputs, argv: Iterable[str]) -> Mapping[str, MaybeText]:
    """Return the variables of a container, without the name of its host if nothing names it.

    The pods of a StatefulSet differ in it. The command lines of most do not, and are read once.
    """
    texts = (*argv, *given.env.values())
    if HOST not in given.env or given.files:
        return given.env
    if any(HOST in text.upper() for text in texts if isinstance(text, str)):
        return given.env
    return {name: value for name, value in given.env.items() if name != HOST}


def engine_places(found: Sequence[tuple[CommandFacts | None, Unknown | None]]) -> list[int]:
    """Return the indexes of the containers that start an engine, or may start one.

    If there is none, the first container with a command stands for the pod.

    Args:
        found: The command line of each container, and why it cannot be read.
    """
    commands = [i for i, (command, _) in enumerate(found) if command]
    engines = [i for i in commands if _may_start_engine(*found[i])]
    return engines or commands[:1]


def _may_start_engine(command: CommandFacts | None, gap: Unknown | None) -> bool:
    return command is not None and bool(command.engine or gap)


@lru_cache(maxsize=1024)
def _command(
    argv: tuple[str, ...],
    env: tuple[tuple[str, str | Unknown], ...],
    hidden: Hidden,
    files: Files,
    image: str | None,
    *,
    folder: str | None,
) -> CommandFacts | None:
    """Read a command once: the checks, the outputs and the table all need its facts."""
    return read_command(argv, dict(env), hidden=hidden, files=files, image=image, folder=folder)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value and not is_unresolved(value) else None
