"""Checks engines whose head and workers are objects of their own, and their gangs and halves.

The rules about halves are documented in core/rules/kv_connector_and_halves.py,
kv_halves_parallel.py and probe_port_probe_key.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.checker.autoscaler_conflict import REMOVE_IT
from kthena_components.checker.leader_selected import changes_port, leader_selected
from kthena_components.checker.leaders_apart_and_published import (
    leader_alone,
    leader_elsewhere,
    leader_left_alone,
    leader_published,
    leaders_apart,
)
from kthena_components.checker.members import COMPARED, COMPARED_IMAGES, PORTS
from kthena_components.checker.pod_ranks_of_parts import pod_ranks_of_parts
from kthena_components.core.engines.kv_transfer import BOOTSTRAP_PORT
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.split_engines import (
    Address,
    EnginePart,
    forwarded,
    is_whole,
    spreads_copies,
)
from kthena_components.core.facts.split_objects import SplitObjects, join_engines, joined
from kthena_components.core.facts.workload import only_template
from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    checked_by,
    count_of,
    join_path,
    refuse,
    run_rule,
)
from kthena_components.core.objects.object import POD_GROUP, read_object
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.kv_connector_and_halves import kv_halves_alike
from kthena_components.core.rules.kv_halves_parallel import kv_halves_parallel
from kthena_components.core.rules.registry import run_checks
from kthena_components.core.rules.support.fixes import placed
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    digits,
    group_kind,
    is_map,
    mapping,
    name_of,
    namespace_of,
    sequence,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import (
    HPA,
    SCALED_OBJECT,
    replicas_of,
    stated_target,
)
from kthena_components.systems.kubernetes.selectors_and_routers import POOLS


def check_parts(
    parts: Sequence[EnginePart],
    named: Mapping[str, Mapping[str, Any]],
    *,
    complete: bool,
    files: Mapping[str, str],
) -> Iterator[Finding]:
    """Check engines whose pods are in several objects by the rules about an engine's pods.

    Args:
        parts: The parts of engines among the objects.
        named: All objects of the cluster, by their paths.
        complete: Whether the cluster has no other objects.
        files: The file of each object, by its path; one file if left out.
    """
    objects = SplitObjects(parts, named, complete=complete, files=files)
    yield from run_rule(leader_selected, objects)
    yield from run_rule(leader_published, objects)
    yield from run_rule(leader_alone if complete else leader_elsewhere, objects)
    yield from run_rule(leaders_apart, objects)
    yield from run_rule(leader_left_alone, objects)
    yield from run_rule(gang_covers_parts, objects)
    yield from run_rule(pod_ranks_of_parts, objects)
    yield from run_rule(autoscaler_of_parts, objects)
    yield from run_rule(kv_halves_of_parts, objects)
    yield from run_rule(bootstrap_of_parts, objects)
    yield from run_rule(bootstrap_of_routers, objects)
    first = {part.pod.command_path: part for part in reversed(parts)}
    reported: set[Finding] = set()
    for facts in join_engines(objects):
        for finding in run_checks(facts):
            is_new = _is_compared(finding) and finding not in reported
            asking = first.get(finding.path) if finding.rule == PORTS else None
            mapped = asking is not None and changes_port(objects, asking)
            if is_new and finding.level is not Level.UNKNOWN and not mapped:
                reported.add(finding)
                yield finding


def _is_compared(finding: Finding) -> bool:
    """Return whether a finding compares pods, so that no single object has it."""
    of_images = finding.rule == COMPARED_IMAGES and finding.level is Level.MANDATORY
    return of_images or finding.rule in COMPARED


_RULE = "gang-covers-engine"
_OTHER_MINIMA = ("minTaskMember", "subGroupPolicy")
"""Fields by which a PodGroup may wait for more pods than minMember."""


def gang_covers_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report a PodGroup that may start with some pods of an engine.

    The rule is documented in core/rules/gang_covers_engine_nodes_whole.py.
    """
    if not any(part.gang for part in objects.parts):
        return
    named = objects.named
    groups = {_key(body): path for path, body in named.items() if group_kind(body) == POD_GROUP}
    reported: set[str] = set()
    for head, pods in _engines(objects):
        path = groups.get((head.namespace, head.gang), "")
        spec = mapping(named[path].get("spec")) if path else {}
        member = count(spec.get("minMember"), 0)
        other = any(spec.get(field) for field in _OTHER_MINIMA)
        if other or path in reported or not isinstance(member, int) or not 0 < member < pods:
            continue
        reported.add(path)
        seen = f"the gang needs {count_of(member, 'pod')} to start, but the engine of {head.kind} "
        seen += f"{display(head.name)} has {pods} that must start together"
        at = join_path(path, "spec.minMember")
        yield refuse(at, seen, f"write minMember {pods}", _RULE)


def _key(body: Mapping[str, Any]) -> tuple[str, str]:
    return namespace_of(body), name_of(body)


def _engines(objects: SplitObjects) -> Iterator[tuple[EnginePart, int]]:
    """Return engines whose pods all name one PodGroup, with the number of their pods."""
    for part in objects.parts:
        if part.gang and is_whole(part):
            yield part, part.count
    for head, workers in joined(objects):
        if head.gang and all(worker.gang == head.gang for worker in workers):
            yield head, head.count + sum(worker.count for worker in workers)


_CONFLICT = "autoscaler-conflict"


def autoscaler_of_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report an autoscaler of the first pod or the workers of an engine over Ray or of copies.

    autoscaler_conflict.py has the rule, and reports the pods of engines with --nnodes.
    """
    scalers = _scalers(objects)
    for head, workers in joined(objects) if scalers else ():
        for part in (head, *workers):
            for at, least in scalers.get((part.namespace, part.kind, part.name), ()):
                if objects.are_together(part, replace(part, path=at)):
                    yield from _scaled(at, head, part, least)


def _scalers(objects: SplitObjects) -> Mapping[tuple[str, str, str], list[tuple[str, int]]]:
    """Return the paths and least replicas of autoscalers, by namespace, kind and name of targets.

    Autoscalers whose range is one number, or not known, are left out.
    """
    found: dict[tuple[str, str, str], list[tuple[str, int]]] = {}
    for path, body in objects.named.items():
        if group_kind(body) not in (HPA, SCALED_OBJECT):
            continue
        scaler = read_object(body, path)
        target, (least, most) = stated_target(scaler), replicas_of(scaler)
        kind, name = target.get("kind"), target.get("name")
        if not (isinstance(least, int) and isinstance(most, int) and least < most):
            continue
        if isinstance(kind, str) and isinstance(name, str):
            places = found.setdefault((scaler.stated_namespace, kind, name), [])
            places.append((scaler.at("spec.scaleTargetRef"), least))
    return found


def _scaled(at: str, head: EnginePart, part: EnginePart, least: int) -> Iterator[Finding]:
    """Report an autoscaler that changes the number of pods of an engine."""
    command = head.pod.command
    if command is None or not (command.ray_role == "head" or spreads_copies(command)):
        return
    shown, remedy = f"is the {part.kind} {display(part.name)}", REMOVE_IT
    if part is head:
        seen = f"{shown}, whose pod is the first one of an engine: another one would start another "
        yield refuse(
            at, f"{seen}engine, and the workers join only one", f"{remedy}replicas 1", _CONFLICT
        )
        return
    needed = part.count
    if not spreads_copies(command):
        world, gpus, each = command.world, head.pod.gpus, part.pod.gpus
        if not (isinstance(world, int) and isinstance(gpus, int) and isinstance(each, int)):
            return
        needed = -(-(world - gpus) // each) if each else 0
    if needed < 1:
        return
    seen = f"{shown}, whose pods are workers of the engine that {display(head.name)} starts: it "
    seen += f"needs {needed} of them from its start to its end, "
    remedy += f"replicas {needed}"
    if least < needed or spreads_copies(command):
        yield refuse(at, f"{seen}and the autoscaler changes their number", remedy, _CONFLICT)
    else:
        yield advise(at, f"{seen}and uses no others that the autoscaler adds", remedy, _CONFLICT)


_RULES = (kv_halves_alike, kv_halves_parallel)
_ROLE = "llm-d.ai/role"
"""The label by which the scheduler of llm-d finds prefill and decode (llm-d-inference-scheduler
pkg/plugins/filter/pd_role.go)."""
_SEVERAL = 2
_ELSEWHERE = Unknown("other halves may be elsewhere")


def kv_halves_of_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report a prefill and a decode engine that get requests together and do not fit.

    That is so if an InferencePool selects both, or if the pods of one have llm-d's routing sidecar
    and the labels of both differ in the role only.
    """
    for group in (*_by_pool(objects), *_by_labels(objects.parts)):
        if len(group) < _SEVERAL:
            continue
        alone = {_path_and_seen(finding) for part in group for finding in _checked([part])}
        for finding in _checked(group):
            if finding.level is not Level.UNKNOWN and _path_and_seen(finding) not in alone:
                yield finding


def _path_and_seen(finding: Finding) -> tuple[str, str]:
    return finding.path, finding.seen


def _checked(group: Sequence[EnginePart]) -> list[Finding]:
    engines = tuple(map(_engine, group))
    facts = ServingFacts(path="", name="", engines=engines, controller_env=(), unread=_ELSEWHERE)
    return [placed(finding) for finding in checked_by(_RULES, facts)]


def _engine(part: EnginePart) -> EngineFacts:
    """Return an engine whose name says which half it is, if its labels do."""
    role = dict(part.labels).get(_ROLE, "") if part.labelled else ""
    name = part.name if role in part.name else f"{part.name} ({role})"
    return EngineFacts(
        path=part.path, name=name, pods=part.count, replicas=1, entry=part.pod, worker=None
    )


def _by_pool(objects: SplitObjects) -> Iterator[list[EnginePart]]:
    """List the engine parts that each InferencePool selects."""
    for body in objects.named.values():
        if group_kind(body) not in POOLS:
            continue
        selector = mapping(mapping(body.get("spec")).get("selector"))
        labels = selector["matchLabels"] if is_map(selector.get("matchLabels")) else selector
        space = namespace_of(body)
        wanted = set(labels.items()) if all(isinstance(v, str) for v in labels.values()) else None
        if wanted:
            yield objects.labelled(space, wanted)


def _by_labels(parts: Sequence[EnginePart]) -> Iterator[list[EnginePart]]:
    """List engine parts whose labels differ only in llm-d's role, if one has a routing sidecar."""
    groups: dict[object, list[EnginePart]] = {}
    for part in parts:
        rest = frozenset(pair for pair in part.labels if pair[0] != _ROLE)
        if part.labelled and rest != part.labels:
            groups.setdefault((part.namespace, rest), []).append(part)
    for group in groups.values():
        if any(part.pod.sidecar is not None for part in group):
            yield group


_MODE, _BOOTSTRAP = "--disaggregation-mode", "--disaggregation-bootstrap-port"


def bootstrap_of_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report SGLang's prefill engines that do not listen where a routing sidecar says."""
    groups = [*_by_pool(objects), *_by_labels(objects.parts)]
    for decode in objects.parts:
        sidecar = decode.pod.sidecar
        if sidecar is None or sidecar.bootstrap is None or _sglang(decode, _MODE) != "decode":
            continue
        near = [part for part in objects.parts if _may_send(part, decode)]
        ports = {_sglang(part, _BOOTSTRAP, BOOTSTRAP_PORT) for part in near}
        port = next(iter(ports), None)
        if len(ports) != 1 or not isinstance(port, int) or port == sidecar.bootstrap:
            continue
        if any(_sglang(part, _MODE) != "prefill" for part in near):
            continue
        first = near[0]
        seen = f"the bootstrap server of {first.kind} {display(first.name)} listens on {port}, but "
        seen += f"container {display(sidecar.name)} of {decode.kind} {display(decode.name)} says "
        seen += f"{sidecar.bootstrap}, so no KV cache is received"
        other = f"set SGLANG_BOOTSTRAP_PORT to {port} in the env of that container"
        remedy = either(set_option(_BOOTSTRAP, sidecar.bootstrap), other)
        joined_ones = any(decode in group and first in group for group in groups)
        report = refuse if joined_ones else advise
        yield report(first.pod.command_path, seen, remedy, "routing-sidecar-port")


def bootstrap_of_routers(objects: SplitObjects) -> Iterator[Finding]:
    """Report `--prefill URL PORT` of SGLang's router, where PORT is no bootstrap port of the pods.

    port_of_service_router_and_pool.py documents the rule.
    """
    for path, body in objects.named.items():
        made = only_template(body)
        spec = mapping(made.body.get("spec")) if made is not None else {}
        for index, container in enumerate(map(mapping, sequence(spec.get("containers")))):
            words = [*sequence(container.get("command")), *sequence(container.get("args"))]
            at = join_path(path, f"{made.path if made else ''}.spec.containers[{index}]")
            for url, port in _prefills(words):
                yield from _of_router(objects, at, namespace_of(body), url, port)


def _prefills(words: Sequence[object]) -> Iterator[tuple[str, int]]:
    """Return the URL and the bootstrap port of each option --prefill that states both."""
    for at, word in enumerate(words):
        url, number = (*words[at + 1 : at + 3], None, None)[:2]
        port = digits(number) if isinstance(number, str) else number
        if word == "--prefill" and isinstance(url, str) and type(port) is int:
            yield url, port


def _of_router(
    objects: SplitObjects, at: str, space: str, url: str, port: int
) -> Iterator[Finding]:
    host = _URL.fullmatch(url)
    service = objects.service_of(Address(host[1], host[2] or space)) if host else None
    near = objects.selected_by(service) if service is not None else []
    ports = {_sglang(part, _BOOTSTRAP, BOOTSTRAP_PORT) for part in near}
    own = next(iter(ports), None)
    modes = {_sglang(part, _MODE) for part in near}
    together = all(objects.are_together(part, replace(part, path=at)) for part in near)
    if service is None or modes != {"prefill"} or len(ports) != 1 or not together:
        return
    reached = forwarded(service.body, port)
    if isinstance(own, int) and not isinstance(reached, Unknown) and reached != own:
        seen = f"has --prefill {url} {port}, but the bootstrap server of {near[0].kind} "
        seen += f"{display(near[0].name)} listens on {own}, so no KV cache is sent"
        yield refuse(at, seen, f"write {own} behind the URL", "router-backend-port")


_URL = regex(r"https?://([a-z0-9-]+)(?:\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?(?::\d+)?/?")


def _sglang(part: EnginePart, option: str, default: object = None) -> object:
    """Return an option of SGLang; None for another engine, Unknown if it cannot be read."""
    command = part.pod.command
    if command is None or command.engine != "sglang":
        return None
    return command.options.get(option, command.hidden or default)


def _may_send(part: EnginePart, decode: EnginePart) -> bool:
    """Return whether a part may be the other half of one that receives."""
    of, other = part.pod.command, decode.pod.command
    if part is decode or part.namespace != decode.namespace or of is None or other is None:
        return False
    return of.model == other.model and _sglang(part, _MODE) not in {None, "null", "decode"}
