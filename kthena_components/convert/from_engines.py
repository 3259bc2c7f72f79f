"""Converts an object whose controller completes the pods of its engines. Pure.

It is described by its engines, and the package's own launcher replaces what the controller adds. A
field that the description does not depend on is a loss, as for objects that are described by their
pods.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.checker.waivers import annotated
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.convert.compare import (
    find_differences,
    gained_gang,
    gang_size,
    lost_gang,
    lost_pods,
)
from kthena_components.convert.conversion import (
    SAME,
    Changes,
    Converted,
    no_backend,
    title_of,
    with_changes,
)
from kthena_components.convert.describe_engines import ByEngines, context_of, describe_engines
from kthena_components.convert.describe_pods import HEAD
from kthena_components.convert.engine_pods import EnginePod
from kthena_components.convert.engine_roles import Gap
from kthena_components.convert.lost_fields import (
    Loss,
    Steps,
    find_losses,
    find_unread,
    leaves,
    replaced,
    together,
)
from kthena_components.core.engines.bash.tree import Span, commands_of
from kthena_components.core.facts.serving import GangFacts
from kthena_components.core.findings import Finding, SpecError, count_of, path_of
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, shell_word
from kthena_components.core.values.read import group_kind, mapping, name_of, sequence
from kthena_components.systems.system import Body

# Finds commands in scripts of engines that a description leaves out. Pure.
#
# A script is one field. So each of its commands, and each word of the one that starts the engine,
# is left out in turn: what changes nothing is not kept.


_SCRIPT = re.compile(r"[\s;&|]")
_HOLDERS = frozenset({"command", "args", "entrypoint"})
_LAUNCH = re.compile(
    r"(exec\s+)?(ray\s|mpirun\b|mpiexec\b|srun\b)|\bray start\b|multi-node-serving\.sh"
    r"|KUBERAY_GEN_RAY_START_CMD|wait_for_ray|wait-for-ray"
)
"""Commands that join pods. The package's own launcher replaces them."""
_LAUNCHERS = frozenset({"ray", "trtllm-llmapi-launch"})
_IDLE = re.compile(r"(sleep|echo|printf|set|wait|true|:|exit|date|chmod)\b|:$|\[|test\b")
"""Commands that leave nothing behind for the engine."""
_WRAPPERS = frozenset({"exec", "nohup"})
_SHELLS = re.compile(r"(/[\w/]*/)?(ba|da|)sh|-[a-z]*c|--|-[a-z]+")
_LONGEST = 4096
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script of an object, and how the object is described with another one in its place."""

    name: str
    """The field that holds it, as a loss names it."""
    text: str
    meaning: Callable[[str], object]
    """Describes the object with another text as the script."""


def scripts_of(body: Mapping[str, Any], meaning: Callable[[Body], object]) -> Iterator[Script]:
    """Yield the scripts in the fields of an object.

    Args:
        meaning: Describes the object again when its fields change.
    """
    for steps, value in leaves(body):
        held = bool(_HOLDERS & set(map(str, steps[-2:])))
        if held and isinstance(value, str) and _SCRIPT.search(value.strip()):

            def put(text: str, at: Steps = steps) -> object:
                return meaning(replaced(body, at, text))

            yield Script(name=path_of(steps), text=value, meaning=put)


def mounted_scripts(
    pods: Iterable[EnginePod], objects: Sequence[Body], meaning: Callable[[Sequence[Body]], object]
) -> Iterator[Script]:
    """Yield the strings of the ConfigMaps that pods mount.

    Args:
        objects: The objects beside theirs.
        meaning: Describes the object of the pods again when these objects change.
    """
    volumes = [v for pod in pods for v in map(mapping, sequence(pod.set.spec.get("volumes")))]
    names = {mapping(volume.get("configMap")).get("name") for volume in volumes}
    for index, body in enumerate(objects):
        if body.get("kind") != "ConfigMap" or name_of(body) not in names:
            continue
        for key, text in mapping(body.get("data")).items():

            def put(other: str, at: int = index, key: str = str(key)) -> object:
                changed = replaced(objects[at], ("data", key), other)
                return meaning([*objects[:at], changed, *objects[at + 1 :]])

            if isinstance(text, str):
                yield Script(name=f"ConfigMap/{name_of(body)}.data.{key}", text=text, meaning=put)


def find_lost_commands(
    scripts: Iterable[Script], usual: object, files: Sequence[str]
) -> Iterator[Loss]:
    """Yield the commands of scripts that a description does not depend on.

    Args:
        usual: The description of the object of the pods as it is.
        files: Names of scripts that others run, and that are looked at themselves.
    """
    for script in scripts:
        # A script without which all is the same is a loss itself, or the launcher's.
        if script.meaning("") == usual:
            continue
        if len(script.text) > _LONGEST:
            seen = f"has {len(script.text)} characters: what it does besides is not known"
            yield Loss(name=script.name, seen=seen)
            continue

        def lost(part: Span, of: Script = script) -> bool:
            return of.meaning(part.removed(of.text)) == usual

        for text in _lost_fields(script.text, commands_of(script.text), files, lost):
            yield Loss(name=script.name, seen=f"{display(text)} is not kept")


def joins_pods(steps: Steps, value: object) -> bool:
    """Return whether a field only holds a script that joins pods, or the shell that runs it."""
    if not _HOLDERS & set(map(str, steps[-2:])) or not isinstance(value, str):
        return False
    if not _SCRIPT.search(value.strip()):
        return _SHELLS.fullmatch(value) is not None or value in _LAUNCHERS
    said = [each.text(value) for each in commands_of(value)] if len(value) <= _LONGEST else []
    return bool(said) and all(_LAUNCH.search(text) or _IDLE.match(text) for text in said)


def _lost_fields(
    script: str, commands: Sequence[Span], files: Sequence[str], lost: Callable[[Span], bool]
) -> Iterator[str]:
    """List commands of a script that the engine's arguments cannot express."""
    for command in commands[:_MOST]:
        text = command.text(script)
        for word in command.words:
            yield from _lost_fields(script, word.inner, files, lost)
        if any(file in text for file in files):
            continue
        if not lost(command):
            yield from _lost_words(script, command.words[:_MOST], lost)
        elif not _LAUNCH.search(text) and not _IDLE.match(text):
            yield text


def _lost_words(script: str, words: Sequence[Span], lost: Callable[[Span], bool]) -> Iterator[str]:
    """Yield the lost words; words that follow each other are one string."""
    together = list[str]()
    for word in words:
        text = word.text(script)
        if not word.inner and text not in _WRAPPERS and lost(word):
            together.append(text)
        elif together:
            yield " ".join(together)
            together = []
    if together:
        yield " ".join(together)


_ENGINES = re.compile(
    r"(replicas|roles|roles\[\d+\](\.(replicas|worker_replicas|engine|resources)\b.*)?)"
)
"""Arguments that decide which engines there are."""


def convert_engines(body: Body, changes: Changes, objects: Sequence[Body] = ()) -> Converted:
    """Convert an object by its engines.

    Args:
        changes: The options of the conversion.
        objects: The other objects, which may complete it.

    Raises:
        SpecError: It cannot be described, or the target cannot express it.
    """
    described = describe_engines(body, context_of(objects))
    compiled, args = _compiled(body, described, changes)
    before = gang_size(described.facts, max(role.pods for role in described.roles))
    return Converted(
        source=body,
        backend="",
        args=args,
        compiled=compiled,
        losses=(
            *_lost(body, described, compiled),
            *_unread(body, described, objects, compiled),
            *lost_gang(before, compiled),
            *lost_pods(compiled),
        ),
        notes=(*_notes(described), *gained_gang(before, compiled)),
    )


def _compiled(
    body: Body, described: ByEngines, changes: Changes
) -> tuple[Compiled, dict[str, Any]]:
    """Compile the described engines, compare them with the object, and apply the user's changes.

    Raises:
        SpecError: An argument is missing, or the engines would differ from the object's.
    """
    title, given = title_of(body), changes.arguments
    if changes.target == SAME:
        raise SpecError([no_backend(body)], title)
    unsaid = [
        gap for gap in described.gaps if not any(_covers(path, gap.argument) for path in given)
    ]
    if unsaid:
        raise SpecError(list(map(_unsaid, unsaid)), title)
    waivers = {entry.rule: entry.text for entry in annotated(body)}
    about = {"waivers": waivers} if waivers else {}
    args = {**described.args, **about, "backend": changes.target}
    plain = {path: value for path, value in given.items() if _is_plain(path, described)}
    own, changed = with_changes(args, plain), with_changes(args, given)
    try:
        compiled = compile_serving(own, title, today=changes.today)
    except SpecError:
        if changed == own:
            raise
        return compile_serving(changed, title, today=changes.today), changed
    if found := list(find_differences(described, compiled.plan)):
        raise SpecError(found, title)
    if changed != own:
        compiled = compile_serving(changed, title, today=changes.today)
    return compiled, changed


def _is_plain(path: str, described: ByEngines) -> bool:
    """Return whether a change fills a gap of the description, or does not change the engines."""
    fills = any(_covers(path, gap.argument) for gap in described.gaps)
    return fills or _ENGINES.fullmatch(path) is None


def _covers(path: str, argument: str) -> bool:
    return path == argument or argument.startswith((f"{path}.", f"{path}["))


def _unsaid(gap: Gap) -> Finding:
    """Write the finding of an argument that the object does not state."""
    word = gap.argument.rpartition(".")[2].upper()
    change = shell_word(f"{gap.argument}={gap.value}") if gap.value else f"{gap.argument}={word}"
    return Finding(
        path=gap.argument,
        seen=f"is not in the object: {gap.because}",
        remedy=f"state it: --set {change}",
        rule="convertible",
    )


def _notes(described: ByEngines) -> Iterator[str]:
    """Say which roles are described by their engine instead of their pods."""
    for index, role in enumerate(described.roles):
        engine = described.args["roles"][index]["engine"]
        joined = (
            f", its {count_of(role.pods, 'pod')} joined by launcher {launcher}"
            if (launcher := engine.get("launcher"))
            else ""
        )
        yield (
            f"describes roles[{index}] by its engine, {engine['kind']}{joined}; the package writes "
            "its command and probes"
        )


def _lost(body: Body, described: ByEngines, compiled: Compiled) -> Iterator[Loss]:
    """Yield losses that are not about one field."""
    for role in described.roles:
        if role.folded:
            seen = "becomes no pod: it has no GPUs, and the first pod of the engine does its work"
            yield Loss(name=role.folded, seen=seen)
    for path in described.without_engine:
        yield Loss(name=path, seen="is not kept: its pods run no engine")
    made = {manifest.body["kind"] for manifest in compiled.manifests} - {"Service"}
    made |= {"Service"} if compiled.plan.expose is not None else set[str]()
    same = body["kind"] in made  # whose controller makes the same beside it
    for title, why in () if same else described.sketch.beside.items():
        if title.partition("/")[0] not in made:
            yield Loss(name=title, seen=f"is not there any more: {why}")


def _unread(
    body: Body, described: ByEngines, objects: Sequence[Body], compiled: Compiled
) -> Iterator[Loss]:
    """Yield the fields, and the commands of scripts, that the description does not depend on."""
    gang = facts_from_plan(compiled.plan).gang

    def meaning(other: Body, beside: Sequence[Body] = objects) -> object:
        return _meaning(other, beside, gang)

    known = [*HEAD, *described.known, *(entry.path for entry in annotated(body))]
    known += [path_of(("metadata", "labels", key)) for key in described.args.get("labels", {})]
    known += [path_of(steps) for steps, value in leaves(body) if joins_pods(steps, value)]
    known += _kept(body, compiled)
    unread = find_unread(body, meaning, known)
    whole = [role.folded for role in described.roles if role.folded]
    whole += described.without_engine
    apart = [path for path in unread if not any(_covers(at, path) for at in whole)]
    yield from (Loss(name=path, seen="is not kept") for path in together(body, apart))
    usual = meaning(body)
    files = list(mounted_scripts(described.pods, objects, lambda other: meaning(body, other)))
    engines = [file for file in files if file.meaning("") != usual]
    own = [file.name.rpartition(".data.")[2] for file in engines]
    yield from find_lost_commands([*scripts_of(body, meaning), *engines], usual, own)


def _kept(body: Body, compiled: Compiled) -> list[str]:
    """Return the paths of the fields that the result keeps in an object of the same kind."""
    made = (m.body for m in compiled.manifests if group_kind(m.body) == group_kind(body))
    result = next(made, None)
    if result is None:
        return []
    lost = [loss.name for loss in find_losses(body, result)]
    paths = (path_of(steps) for steps, _ in leaves(body))
    return [path for path in paths if not any(_covers(at, path) for at in lost)]


def _meaning(body: Body, objects: Sequence[Body], gang: GangFacts | None) -> object:
    """Describe an object, to compare it with another one; None if it cannot be described.

    The size of its gang counts if the result has a gang of the same size.
    """
    try:
        described = describe_engines(body, context_of(objects))
    except SpecError:
        return None
    own = described.facts.gang
    kept = own is not None and gang is not None and own.min_member == gang.min_member
    gaps = tuple(gap.argument for gap in described.gaps)
    return described.args, described.said, gaps, kept
