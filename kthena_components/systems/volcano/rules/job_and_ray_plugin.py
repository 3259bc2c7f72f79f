"""Checks Volcano's Jobs, and what their plugin ray replaces."""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.workload import pods_of_template
from kthena_components.core.findings import (
    Finding,
    count_of,
    join_path,
    not_checked,
    part_of_rule,
    refuse,
    suggest,
    suggest_name,
)
from kthena_components.core.naming import DNS_LABEL, least_length
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import at_most, placed_at, remove, write
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown, known_product
from kthena_components.systems.volcano.plugins import arguments, has_hosts, task_names
from kthena_components.systems.volcano.rules.hypernode_names_topology import (
    TOPOLOGY_RULES,
    volcano_name,
)
from kthena_components.systems.volcano.view import Rule, Task, tasks_of

# The rule ray-plugin-commands: what Volcano's plugin ray replaces.


_WRITTEN = {"head": "ray start --head", "worker": "ray start"}
"""The tasks, and their containers, that the plugin changes; its arguments may give other names."""


def ray_plugin_commands(found: Object) -> Iterator[Finding]:
    """No engine is started in a container whose command Volcano's plugin ray replaces.

    The plugin writes `ray start --head --block` into the container head of the task head, and
    `ray start --block` into the container worker of the task worker, or into those that its
    arguments name. What the containers state is lost.

    Pass: the plugin ray, and the engine as a Ray job or in another container; no plugin ray.
    Fail: the plugin ray, and vllm serve in the command of the container head.
    Level: mandatory.
    Source: Volcano v1.14.1 pkg/controllers/job/plugins/distributed-framework/ray/ray.go
    OnPodCreate.
    """
    plugins = found.spec.get("plugins")
    stated = mapping(plugins).get("ray")
    if unknown_in(plugins) or "ray" not in mapping(plugins) or unknown_inside(stated):
        return
    options = arguments(stated)
    for task, name in zip(tasks_of(found), task_names(found), strict=True):
        for role, command in _WRITTEN.items():
            container = options.get(f"{role}Container", role)
            if name != options.get(role, role) or unknown_in(task.template):
                continue
            for pod in pods_of_template(task.template, f"{task.path}.template", found.context):
                engine = pod.command.engine if pod.command is not None else None
                if pod.own is not None and pod.own.name == container and engine is not None:
                    seen = f"starts {TITLES.get(engine, engine)}, but the plugin ray replaces it"
                    text = "remove the plugin ray, and start Ray in the commands"
                    remedy = remove(text, at="spec.plugins.ray")
                    yield refuse(pod.command_path, f"{seen} by {command}", remedy)


# Checks Volcano Jobs for what their webhook rejects. The docstring of each rule documents it.


_EVENTS = (
    "*",
    "JobUpdated",
    "PodEvicted",
    "PodFailed",
    "PodPending",
    "TaskCompleted",
    "TaskFailed",
    "Unknown",
)
_ACTIONS = (
    "AbortJob",
    "CompleteJob",
    "RestartJob",
    "RestartPartition",
    "RestartPod",
    "RestartTask",
    "ResumeJob",
    "TerminateJob",
)
_PLUGINS = ("env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow")
_PARTS = "job-parts"
_SHOWN = 8
"""Maximum number of names in a message."""


def job_policies(found: Object) -> Iterator[Finding]:
    """A policy of a Volcano Job has events with an action, or an exit code.

    It does not have both. Each event and each exit code occurs once, `*` excludes other events, and
    an exit code is not 0.

    Pass: event PodEvicted, action RestartJob; exitCode 3, action AbortJob.
    Fail: event PodFailed and exitCode 3; event *, beside another policy; action Restart.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14.4 and v1.15.1 pkg/webhooks/admission/jobs/validate/util.go
    validatePolicies.
    """
    yield from _policies(found.spec.get("policies"), "spec.policies")
    for task in tasks_of(found):
        yield from _policies(task.fields.get("policies"), f"{task.path}.policies")


@part_of_rule
def _policies(listed: object, at: str) -> Iterator[Finding]:
    """Check the policies of a Job or a task: events, exit codes and actions."""
    events, codes = set[str](), set[int]()
    for index, policy in enumerate(map(mapping, sequence(listed))):
        path, code = f"{at}[{index}]", whole(policy.get("exitCode"))
        words = [text(word) for word in (*sequence(policy.get("events")), policy.get("event"))]
        own = dict.fromkeys(word for word in words if isinstance(word, str) and word)
        require_known(path, code, policy.get("action"), policy.get("events"), *words)
        if bool(own) == (code is not None):
            what = "both events and an exit code" if own else "neither an event nor an exit code"
            remedy = "write one of event, events and exitCode"
            yield refuse(path, f"names {what}", remedy)
        for event in own:
            yield from _event(event, text(policy.get("action")), path, events)
        events.update(own)
        if code == 0 or code in codes:
            why = "which is not a failure" if code == 0 else "as in another policy"
            remedy = "write another exit code, or remove it"
            yield refuse(f"{path}.exitCode", f"is {code}, {why}", remedy)
        codes.update([code] if isinstance(code, int) else [])
    if "*" in events and len(events) > 1:
        others = ", ".join(sorted(events - {"*"})[:_SHOWN])
        seen = f"have the event * and others, {others}, but * means all"
        yield refuse(at, seen, "remove * or the others")


def _event(event: str, action: object, path: str, before: set[str]) -> Iterator[Finding]:
    """Check a policy of a Job: its event, its action, and no event twice."""
    if event not in _EVENTS:
        seen = f"has the event {display(event)}, which no policy can name"
        field = f"{path}.event"
        yield refuse(path, seen, placed_at(suggest(event, _EVENTS), field))
    elif action not in _ACTIONS:
        has = "no action" if action is None else f"{display(action)}, which is not an action"
        remedy = suggest(str(action), _ACTIONS)
        yield refuse(path, f"has {has}", placed_at(remedy, f"{path}.action"))
    elif event in before:
        seen = f"has the event {event}, as another policy has"
        yield refuse(path, seen, "remove it from one of them")


_ROLES = {"mpi": ("master", "worker"), "ray": ("head",)}
"""The tasks that a plugin needs, and whose names its arguments give."""


def job_parts(found: Object) -> Iterator[Finding]:
    """The plugins of a Volcano Job exist, and its volumes have different paths and one claim each.

    The plugin mpi needs the tasks master and worker, the plugin ray a task head, or those that
    their arguments name. The files /etc/volcano/TASK.host are there with the plugin svc only, or
    with one that includes it, one for each task.

    Pass: plugins ssh and svc; a volume at /data with volumeClaimName data.
    Fail: plugin horovod; two volumes at /data; a volume without volumeClaimName and volumeClaim;
    `cat /etc/volcano/worker.host` without the plugin svc, or without a task worker.
    Level: mandatory. Volcano's webhook rejects it, its plugin ray creates no pod, or a script finds
    no file.
    Source: Volcano v1.14.4 and v1.15.1 pkg/controllers/job/plugins/factory.go and
    distributed-framework/ray/ray.go OnPodCreate; pkg/webhooks/admission/jobs/validate/admit_job.go
    validateJobCreate, util.go validateIO.
    """
    rule, plugins, places = _PARTS, found.spec.get("plugins"), set[str]()
    for name in mapping(plugins):
        if name not in _PLUGINS:
            path = join_path("spec.plugins", key_text(name))
            remedy = suggest_name(key_text(name), _PLUGINS, mapping(plugins))
            yield refuse(path, "is not a plugin of Volcano", remedy, rule)
    for index, volume in enumerate(map(mapping, sequence(found.spec.get("volumes")))):
        path, place = f"spec.volumes[{index}]", text(volume.get("mountPath"))
        claim, named = volume.get("volumeClaim"), volume.get("volumeClaimName") or None
        if gap := first_unknown(claim, named, place):
            yield not_checked(path, gap, rule)
        elif (claim is None) == (named is None):
            seen = "has both volumeClaim and volumeClaimName" if named else "has no claim"
            remedy = "write volumeClaimName for an existing claim, or else volumeClaim"
            yield refuse(path, seen, remedy, rule)
        elif place in places:
            seen = f"is {display(place)}, which another volume also has"
            yield refuse(f"{path}.mountPath", seen, "write another path", rule)
        places.update([place] if isinstance(place, str) else [])
    for name, roles in _ROLES.items():
        if name in mapping(plugins):
            stated = mapping(plugins)[name]
            yield from _tasks_of_plugin(f"spec.plugins.{name}", stated, roles, found)
    yield from _host_files(found)


_HOST_FILE = regex(r"/etc/volcano/([A-Za-z0-9_-]+)\.host\b")


@part_of_rule
def _host_files(found: Object) -> Iterator[Finding]:
    """Report files of host names that the plugin svc does not write.

    Source: Volcano v1.14.1 pkg/controllers/job/plugins/svc/svc.go GenerateHosts, mountConfigmap.
    """
    plugins, tasks = found.spec.get("plugins"), tasks_of(found)
    names = [text(task.fields.get("name")) for task in tasks]
    for task in tasks:
        spec = mapping(mapping(task.template).get("spec"))
        for field in ("initContainers", "containers"):
            for index, each in enumerate(map(mapping, sequence(spec.get(field)))):
                asked = _HOST_FILE.search(f"{each.get('command')} {each.get('args')}")
                if asked is None:
                    continue
                at, mounts = f"{task.path}.template.spec.{field}[{index}]", each.get("volumeMounts")
                hidden = unknown_inside(mounts, *sequence(mounts))
                require_known(at, unknown_inside(plugins), hidden, *names)
                if any("volcano" in str(mount) for mount in sequence(mounts)):
                    continue
                if not has_hosts(mapping(plugins)):
                    seen = f"reads {asked[0]}, which only the plugin svc writes"
                    yield refuse(at, seen, "add svc: [] to spec.plugins")
                elif asked[1] not in names:
                    seen = f"reads {asked[0]}, but the Job has no task {display(asked[1])}"
                    shown = " or ".join(f"/etc/volcano/{name}.host" for name in names if name)
                    yield refuse(at, seen, f"write {shown}")


@part_of_rule
def _tasks_of_plugin(
    path: str, stated: object, roles: tuple[str, ...], found: Object
) -> Iterator[Finding]:
    """Check that the tasks exist which a plugin needs, by their usual or stated names."""
    names = {text(task.fields.get("name")) for task in tasks_of(found)}
    require_known(path, unknown_inside(stated, found.spec.get("tasks")), *names)
    options = arguments(stated)
    for role in roles:
        wanted = options.get(role, role)
        if wanted not in names:
            seen = f"needs a task {display(wanted)} for its {role}, and there is none"
            remedy = f"rename a task, or write --{role}= with the name of one"
            yield refuse(path, seen, remedy)


def job_minimum(found: Object) -> Iterator[Finding]:
    """A Volcano Job waits for at most as many pods as its tasks have.

    Pass: minAvailable 4, tasks of 1 and 3 replicas.
    Fail: minAvailable 5, tasks of 1 and 3 replicas.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
    """
    path, least = "spec.minAvailable", count(found.spec.get("minAvailable"))
    sizes = [task.replicas for task in tasks_of(found)]
    if least is None or not sizes:
        return
    require_known(path, least, *sizes)
    total = sum(size for size in sizes if isinstance(size, int))
    if isinstance(least, int) and least > total:
        yield Finding(
            path=path,
            seen=f"is {least}, but the tasks have {count_of(total, 'pod')}",
            remedy=at_most(total),
        )


def job_partitions(found: Object) -> Iterator[Finding]:
    """A task has totalPartitions × partitionSize pods, and waits for minPartitions × partitionSize.

    Pass: replicas 8, totalPartitions 4, partitionSize 2.
    Fail: replicas 7, totalPartitions 4, partitionSize 2.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14 pkg/webhooks/admission/jobs/validate/admit_job.go
    validatePartitionPolicy.
    """
    for task in tasks_of(found):
        policy = mapping(task.fields.get("partitionPolicy"))
        size, least = count(policy.get("partitionSize")), count(task.fields.get("minAvailable"))
        for field, stated, parts, counted in (
            ("replicas", task.replicas, policy.get("totalPartitions"), "total"),
            ("minAvailable", least, policy.get("minPartitions"), "min"),
        ):
            path, number = f"{task.path}.{field}", count(parts)
            if None in {stated, number, size}:
                continue
            if gap := first_unknown(stated, number, size):
                yield not_checked(path, gap)
            elif stated != known_product(number, size):
                yield Finding(
                    path=path,
                    seen=f"is {stated}, but {counted}Partitions {number} × partitionSize {size} = "
                    f"{known_product(number, size)}",
                    remedy=write(known_product(number, size)),
                )


def job_tasks(found: Object) -> Iterator[Finding]:
    """A Volcano Job has tasks with different names, without a cycle of dependencies.

    minAvailable of a task is at most its replicas. The name of a pod, which consists of the Job,
    the task and an index, has at most 63 characters. A task without a name is called default with
    its index.

    Pass: worker, which depends on master.
    Fail: two tasks worker; a and b, which depend on each other; a dependency that does not exist.
    Level: mandatory. Volcano's webhook rejects it.
    Source: Volcano v1.14.4 and v1.15.1 pkg/webhooks/admission/jobs/validate/admit_job.go
    validateJobCreate, util.go topoSort; jobs/mutate/mutate_job.go mutateSpec.
    """
    tasks = tasks_of(found)
    if not tasks and found.spec.get("tasks") in (None, []):
        yield refuse("spec.tasks", "has no task", "add one")
    names = [text(task.fields.get("name"), "") for task in tasks]
    named = [f"default{i}" if name == "" else name for i, name in enumerate(names)]
    first: dict[str, int] = {}
    for index, (task, name) in enumerate(zip(tasks, named, strict=True)):
        path, least = f"{task.path}.name", count(task.fields.get("minAvailable"))
        if isinstance(name, Unknown):
            yield not_checked(path, name)
        elif name is not None and first.setdefault(name, index) != index:
            seen = f"is {display(name)}, which is also the name of task {first[name]}"
            yield refuse(path, seen, "rename one of them")
        if isinstance(least, int) and isinstance(task.replicas, int) and least > task.replicas:
            seen = f"is {least}, but the task has {count_of(task.replicas, 'pod')}"
            remedy = f"write at most {task.replicas}"
            yield refuse(f"{task.path}.minAvailable", seen, remedy)
        yield from _pod_name(found.name, name, index)
    yield from _order(tasks, named)


def _pod_name(job: object, task: object, index: int) -> Iterator[Finding]:
    if isinstance(job, str) and isinstance(task, str) and job and task:
        pod = f"{job}-{task}-{index}"
        over = least_length(pod) - DNS_LABEL
        if over > 0:
            seen = f"makes pods such as {display(pod)}, of {len(pod)} characters, but"
            seen += f" {DNS_LABEL} are allowed"
            remedy = f"shorten it, or the Job's name, by {over}"
            yield refuse(f"spec.tasks[{index}].name", seen, remedy)


def _order(tasks: list[Task], named: list[MaybeText | None]) -> Iterator[Finding]:
    """Find a task that cannot start, because what it depends on never does."""
    waiting: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for task, name in zip(tasks, named, strict=True):
        listed = mapping(task.fields.get("dependsOn")).get("name")
        before = [text(word) for word in sequence(listed)]
        path = f"{task.path}.dependsOn.name"
        require_known(path, name, listed, *before)
        waiting[str(name)] = [word for word in before if isinstance(word, str)]
        places[str(name)] = path
    for name, others in waiting.items():
        if missing := [other for other in others if other not in waiting]:
            seen = f"names {display(missing[0])}, which is not a task, so this one never starts"
            at = f"{places[name]}[{others.index(missing[0])}]"
            yield refuse(places[name], seen, placed_at(suggest(missing[0], waiting), at))
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError as error:
        cycle = error.args[1]
        shown = " -> ".join(cycle[:_SHOWN])
        seen = f"is part of a cycle, {shown}, so none of these tasks ever starts"
        yield refuse(places[cycle[0]], seen, "remove one of the dependencies")


JOB_RULES: tuple[Rule, ...] = (
    volcano_name,
    job_minimum,
    job_partitions,
    job_tasks,
    job_policies,
    job_parts,
    ray_plugin_commands,
    *TOPOLOGY_RULES,
)
