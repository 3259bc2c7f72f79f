"""Rules that compare the sizes of an engine, in options and variables, with its group of pods."""

import re
from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.option_table import rows_of
from kthena_components.core.engines.options import TITLES
from kthena_components.core.engines.placeholders import misspelled
from kthena_components.core.engines.values import NUMBERS
from kthena_components.core.facts.pod import MetadataField, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, write
from kthena_components.core.rules.support.engine_pods import DEFAULTS, RAY, pods_of
from kthena_components.core.rules.support.fixes import give_pods
from kthena_components.core.rules.support.messages import part_of_engine, title
from kthena_components.core.rules.support.own_rank_and_unset_variables import (
    RANKS,
    Ranked,
    in_order,
    may_be_of_image,
    no_value,
    own_rank,
    set_by,
    total_of,
    workers_of,
)
from kthena_components.core.values.read import require_known
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    CommandSubstitution,
    NotSet,
    SetLater,
    Unknown,
    known,
)


def nnodes_equals_group(facts: ServingFacts) -> Iterator[Finding]:
    """--nnodes of a native launch equals the pods of the engine.

    With a larger number the engine waits forever; with a smaller one some pods join no engine, or a
    second one.

    Pass: --nnodes 2 for an entry and 1 worker; --nnodes $(LWS_GROUP_SIZE).
    Fail: --nnodes 4 for an entry and 1 worker.

    Source: vllm/config/parallel.py nnodes; sglang/srt/server_args.py nnodes.
    """
    for engine in facts.engines:
        yield from _nodes(engine, facts)


@part_of_engine
def _nodes(engine: EngineFacts, facts: ServingFacts) -> Iterator[Finding]:
    """Compare --nnodes with the pods of one engine."""
    command, pods = engine.entry.command, engine.pods
    nodes = command.nnodes if command else None
    if command is None or nodes is None or isinstance(pods, Unknown):
        return
    if known(nodes) != pods:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(pods, 'pod')}, but is started with "
            f"--nnodes {nodes}",
            remedy=_equal_or_copied(facts, engine, command, pods),
        )


def _equal_or_copied(
    facts: ServingFacts, engine: EngineFacts, command: CommandFacts, pods: int
) -> str:
    """Count the pods, or give the engine other pods where its ranks fit only these."""
    nodes, ranks, gpus = command.nnodes, command.per_rank_world, engine.entry.gpus
    if isinstance(nodes, int) and isinstance(ranks, int):
        fits = isinstance(gpus, int) and ranks == nodes * gpus
        if fits or (ranks % pods and not ranks % nodes):
            return give_pods(engine, nodes)
    own = _size(facts, engine)
    return either(set_option("--nnodes", pods), f"$({own})" if own else "")


def _size(facts: ServingFacts, engine: EngineFacts) -> str:
    """Return the variable with the size of the engine that its first pod has; empty if none."""
    stated = (name for name in _SIZES if name in engine.entry.stated)
    return set_by(facts.controller_env, _SIZES) or next(stated, "")


def ray_cluster_size_equals_group(facts: ServingFacts) -> Iterator[Finding]:
    """The Ray leader waits for exactly the pods of its engine.

    With a larger number it waits forever; with a smaller one vLLM starts before all pods are ready.

    Pass: --ray_cluster_size=2 for an entry and 1 worker.
    Fail: --ray_cluster_size=3 for an entry and 1 worker.
    Level: mandatory.
    Source: vllm examples/online_serving/multi-node-serving.sh.
    """
    for engine in facts.engines:
        yield from _cluster(engine, facts)


@part_of_engine
def _cluster(engine: EngineFacts, facts: ServingFacts) -> Iterator[Finding]:
    """Compare the size for which the leader waits with the pods of one engine."""
    command = engine.entry.command
    size = command.ray_cluster_size if command else None
    if size is None:
        return
    require_known("", size, engine.pods)
    if size != engine.pods:
        own = _size(facts, engine)
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(engine.pods, 'pod')}, "
            f"but its Ray leader waits for {size} (ray_cluster_size)",
            remedy=either(f"write --ray_cluster_size={engine.pods}", f"$({own})" if own else ""),
        )


_FIELDS = {
    "--tensor-parallel-size": "tensor",
    "--pipeline-parallel-size": "pipeline",
    "--data-parallel-size": "data",
    "--data-parallel-size-local": "data_local",
    "--data-parallel-rank": "data_rank",
    "--data-parallel-start-rank": "data_start_rank",
    "--nnodes": "nnodes",
    "--node-rank": "node_rank",
}
"""Options with a size or a rank, and the fields of a command line with their values."""
_SIZES = (
    *("GROUP_SIZE", "LWS_GROUP_SIZE", "RBG_LWP_GROUP_SIZE", "POD_GROUP_SIZE"),
    "GROVE_PCSG_TEMPLATE_NUM_PODS",
)
"""Variables of controllers with the number of an engine's pods."""


_OF_SERVICE = regex(r"_SERVICE_PORT(?:_|$)|_(?:TCP|UDP)_PORT$")
"""The end of a variable with the port of a Service, which the kubelet sets."""


def size_variables(facts: ServingFacts) -> Iterator[Finding]:
    """The sizes and ranks of an engine come from variables that something sets in its pods.

    A controller sets only its own variables: Kthena WORKER_INDEX and GROUP_SIZE, LeaderWorkerSet
    LWS_WORKER_INDEX and LWS_GROUP_SIZE, the plugin env of a Volcano Job VC_TASK_INDEX. Without a
    value, `$(NAME)` stays as it is and `$NAME` is empty: the engine refuses the option, or each pod
    computes the same rank from it. A name of no known controller may be filled in before the
    object is applied, and is not checked, unless it misspells one that the controller or the env of
    the container sets. In the value of a variable, Kubernetes replaces only references to variables
    that come before it. Other options that take a number are checked, too, such as --port: with a
    variable of another name as advice.

    Pass: --node-rank $(LWS_WORKER_INDEX) in a LeaderWorkerSet of size 2.
    Fail: --node-rank $(LWS_WORKER_INDEX) in a ModelServing, where it is WORKER_INDEX; --nnodes
    $(LWS_GROUP_SIX) in a LeaderWorkerSet; --node-rank $((VC_TASK_INDEX + 1)) in a Volcano Job
    without the plugin env; --tp $(TP) with the variables TP $(GPUS) and then GPUS 8; --port $PORT
    in a script in the engine's own image, without a variable PORT.
    Level: mandatory; advisory for other options than sizes and ranks.
    Source: Kubernetes documentation, Define Dependent Environment Variables; volcano-sh/kthena
    v1.0.0 pkg/apis/workload/v1alpha1/model_serving_types.go; kubernetes-sigs/lws pkg/utils/pod/
    pod_utils.go; Volcano v1.14 pkg/controllers/job/plugins/env/env.go; kubernetes
    pkg/kubelet/kubelet_pods.go makeEnvironmentVariables; third_party/forked/golang/expansion.
    """
    for engine in facts.engines:
        # A leader and its workers may have one template.
        for pod in {pod.command_path: pod for pod in reversed(pods_of(engine))}.values():
            yield from _check(facts, engine, pod)
            yield from _numbers(facts, engine, pod)


def _check(facts: ServingFacts, engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    """Report the first size that a command line takes from a variable without a value."""
    command, controller_env = pod.command, facts.controller_env
    if command is None or controller_env is None or command.hidden is not None:
        return
    for option, field in _FIELDS.items():
        value = getattr(command, field)
        open_ended = isinstance(value, NotSet) and not (
            isinstance(value, SetLater | CommandSubstitution)
            or misspelled(value.name, (*controller_env, *sorted(pod.stated)))
        )
        seen = "" if open_ended else no_value(controller_env, pod, value)
        if not seen:
            continue
        written = command.written.get(option)
        stated = f"takes {option}" + (f" from {written}" if written else " from a variable")
        yield Finding(
            path=pod.command_path,
            seen=f"{title(engine)} {stated}, {seen}",
            remedy=in_order(value)
            or _respelled(pod, option, value)
            or _remedy_of(facts, engine, pod, option),
        )
        return


def _numbers(facts: ServingFacts, engine: EngineFacts, pod: PodFacts) -> Iterator[Finding]:
    """Report other numbers that a command line takes from a variable without a value."""
    command = pod.command
    if command is None or command.engine not in TITLES or command.hidden is not None:
        return
    for option, value in command.options.items():
        if option in _FIELDS or not isinstance(value, NotSet) or may_be_of_image(pod, value):
            continue
        of_service = pod.service_links and _OF_SERVICE.search(value.name)
        if value.name in (facts.controller_env or ()) or of_service:
            continue
        seen = (
            no_value(facts.controller_env, pod, value) if _is_number(command.engine, option) else ""
        )
        if seen:
            stated = f"takes {option} from {command.written.get(option) or 'a variable'}"
            yield Finding(
                path=pod.command_path,
                seen=f"{title(engine)} {stated}, {seen}",
                remedy=in_order(value)
                or _respelled(pod, option, value)
                or "set the variable in the container's env, or write a number",
                level=Level.ADVISORY,
            )


def _is_number(engine: str, option: str) -> bool:
    return any(row.type.removesuffix("?") in NUMBERS for row in rows_of(engine, option))


def _respelled(pod: PodFacts, option: str, value: object) -> str:
    """Write the variable of the container's env that a name misspells; empty if it does not."""
    if not isinstance(value, NotSet) or pod.command is None:
        return ""
    near, written = misspelled(value.name, sorted(pod.stated)), pod.command.written.get(option)
    return set_option(option, written.replace(value.name, near)) if near and written else ""


def _remedy_of(facts: ServingFacts, engine: EngineFacts, pod: PodFacts, option: str) -> str:
    """Name the variable that the controller of the pods sets, or else what a variable needs."""
    own = set_by(facts.controller_env, _SIZES) if option == "--nnodes" else ""
    if own:
        return set_option(option, f"$({own})")
    pods = _ranked(engine, pod, option) if option in RANKS else None
    if pods is not None:
        return own_rank(pods, facts)
    return "set the variable in the container's env, or write a number"


def _ranked(engine: EngineFacts, pod: PodFacts, option: str) -> Ranked | None:
    """Return the pods of a template, with the first of their ranks; None if that is not known."""
    command, siblings = pod.command, engine.siblings
    if command is None:
        return None
    if engine.worker is pod:
        return workers_of(engine, option, command)
    total, step = total_of(option, command)
    if total is None:
        return None
    if engine.worker is not None:
        return Ranked(option=option, first=0, count=1, step=step)
    count = engine.pods if siblings is None else siblings.count
    # As many as there are ranks, or all behind the first one.
    if not isinstance(count, int) or (missing := total // step - count) not in {0, 1}:
        return None
    return Ranked(option=option, first=missing * step, count=count, step=step)


_DECIDING = frozenset((*_FIELDS, *DEFAULTS))
"""Options with a size, a rank or the address of the first rank."""


def metadata_variables(facts: ServingFacts) -> Iterator[Finding]:
    """A label or annotation from which an engine takes a size, rank or address is on its pods.

    A variable with a fieldRef to a label or annotation is empty if neither the template nor the
    controller adds the label or annotation. Each controller adds only some: an indexed Job its
    completion index, a StatefulSet apps.kubernetes.io/pod-index, a LeaderWorkerSet the size of a
    group, and the size of subgroups only with a subGroupPolicy, a JobSet
    jobset.sigs.k8s.io/coordinator only with spec.coordinator, AIBrix the number in a group only
    with podGroupSize above 1. A policy at admission may add labels
    of other domains, so findings about them are advice.

    Pass: --dist-init-addr $(HEAD):20000 with HEAD from the annotation
    jobset.sigs.k8s.io/coordinator, in a JobSet with spec.coordinator.
    Fail: the same without spec.coordinator; --node-rank $(RANK) with RANK from the label
    apps.kubernetes.io/pod-index in a Deployment; --nnodes $(SIZE) with SIZE from the label
    leaderworkerset.sigs.k8s.io/size, which is an annotation.
    Level: mandatory; advisory for other domains.
    Source: kubernetes pkg/kubelet/kubelet_pods.go podFieldSelectorRuntimeValue and
    pkg/fieldpath/fieldpath.go; kubernetes-sigs/jobset pkg/controllers/jobset_controller.go
    labelAndAnnotateObject; kubernetes-sigs/lws v0.6.2 to v0.10.0 pkg/controllers; kubernetes
    pkg/controller/statefulset/stateful_set_utils.go and job/indexed_job_utils.go. Compared with the
    pods that Kubernetes 1.34, LeaderWorkerSet 0.9.0, Kthena 1.0.0, JobSet 0.12.0, AIBrix 0.7.0,
    RoleBasedGroup v0.8.0-alpha.5 and Volcano 1.14.1 made.
    """
    added_fields = facts.added_fields
    if added_fields is None:
        return
    for engine in facts.engines:
        for pod in {pod.command_path: pod for pod in reversed(pods_of(engine))}.values():
            for each in pod.from_metadata:
                option = "" if each.field in added_fields else _taken_by(pod, each.name)
                if option:
                    yield _without_field(facts, engine, pod, each, option)


def _taken_by(pod: PodFacts, name: str) -> str:
    """Return the option by which a command line takes a size, rank or address from a variable."""
    command, own = pod.joined or pod.command, re.escape(name)
    if command is None or command.hidden is not None:
        return ""
    reference = re.compile(rf"\$(?:\({own}\)|\{{{own}\}}|{own}\b)")
    written = {option: text for option, text in command.written.items() if option in _DECIDING}
    written[RAY] = command.ray_written
    return next((option for option, text in written.items() if reference.search(text)), "")


def _without_field(
    facts: ServingFacts, engine: EngineFacts, pod: PodFacts, read: MetadataField, option: str
) -> Finding:
    key, kind, added_fields = read.key, read.part.removesuffix("s"), facts.added_fields or ()
    by = next((of for start, of in facts.label_owners.items() if key.startswith(start)), "")
    other = next((field for field in naming.fields_of_pod(key) if field in added_fields), "")
    where = facts.labels_by_field.get(key, "")
    adds = f" (only {by} {'with ' + where + ' ' if where else ''}does)" if by and not other else ""
    state = f"write {where}, or" if where else "write"
    state += f" the {kind} in the metadata of the template"
    fields = "" if where else ", or take the value from a field that these pods have"
    pods = _ranked(engine, pod, option) if option in RANKS and not where else None
    if pods is not None:  # One label of the template would give all its pods one rank.
        state, fields = own_rank(pods, facts), ""
    return Finding(
        path=read.path,
        seen=f"{title(engine)} takes {option} from the variable {read.name}, which reads the "
        f"{kind} {key} of its pod, but neither the template nor the controller adds this "
        f"{kind}{adds}, so {read.name} is empty",
        remedy=write(other, f"write {other}") if other else f"{state}{fields}",
        level=Level.MANDATORY if by else Level.ADVISORY,
    )
