"""Volcano Jobs: policies, plugins and volumes. A rule's docstring documents it."""

from collections.abc import Iterator

from kthena_components.core.findings import (
    Finding,
    join_path,
    not_checked,
    part_of_rule,
    refuse,
    suggest,
    suggest_name,
)
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import placed_at
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
    whole,
)
from kthena_components.systems.volcano.plugins import arguments
from kthena_components.systems.volcano.view import tasks_of

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
            seen = "is 0, which is no failure" if code == 0 else f"is {code}, as in another policy"
            remedy = "write another exit code, or remove it"
            yield refuse(f"{path}.exitCode", seen, remedy)
        codes.update([code] if isinstance(code, int) else [])
    if "*" in events and len(events) > 1:
        others = ", ".join(sorted(events - {"*"})[:_SHOWN])
        seen = f"have the event * and others, {others}, but * means all"
        yield refuse(at, seen, "remove * or the others")


def _event(event: str, action: object, path: str, before: set[str]) -> Iterator[Finding]:
    if event not in _EVENTS:
        seen = f"has the event {display(event)}, which no policy can name"
        field = f"{path}.event"
        yield refuse(path, seen, placed_at(suggest(event, _EVENTS), field))
    elif action not in _ACTIONS:
        seen = "has no action" if action is None else f"has the action {display(action)}, not one"
        remedy = suggest(str(action), _ACTIONS)
        yield refuse(path, seen, placed_at(remedy, f"{path}.action"))
    elif event in before:
        seen = f"has the event {event}, as another policy has"
        yield refuse(path, seen, "remove it from one of them")


_ROLES = {"mpi": ("master", "worker"), "ray": ("head",)}
"""The tasks that a plugin needs, and whose names its arguments give."""


def job_parts(found: Object) -> Iterator[Finding]:
    """The plugins of a Volcano Job exist, and its volumes have different paths and one claim each.

    The plugin mpi needs the tasks master and worker, the plugin ray a task head, or those that
    their arguments name.

    Pass: plugins ssh and svc; a volume at /data with volumeClaimName data.
    Fail: plugin horovod; two volumes at /data; a volume without volumeClaimName and volumeClaim.
    Level: mandatory. Volcano's webhook rejects it, or its plugin ray creates no pod.
    Source: Volcano v1.14.4 and v1.15.1 pkg/controllers/job/plugins/factory.go and
    distributed-framework/ray/ray.go OnPodCreate; pkg/webhooks/admission/jobs/validate/admit_job.go
    validateJobCreate, util.go validateIO.
    """
    rule, plugins, places = _PARTS, found.spec.get("plugins"), set[str]()
    for name in mapping(plugins):
        if name not in _PLUGINS:
            path = join_path("spec.plugins", key_text(name))
            remedy = suggest_name(key_text(name), _PLUGINS, mapping(plugins))
            yield refuse(path, "is no plugin of Volcano", remedy, rule)
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
            seen = f"is {display(place)}, as that of another volume"
            yield refuse(f"{path}.mountPath", seen, "write another path", rule)
        places.update([place] if isinstance(place, str) else [])
    for name, roles in _ROLES.items():
        if name in mapping(plugins):
            stated = mapping(plugins)[name]
            yield from _tasks_of_plugin(f"spec.plugins.{name}", stated, roles, found)


@part_of_rule
def _tasks_of_plugin(
    path: str, stated: object, roles: tuple[str, ...], found: Object
) -> Iterator[Finding]:
    names = {text(task.fields.get("name")) for task in tasks_of(found)}
    require_known(path, unknown_inside(stated, found.spec.get("tasks")), *names)
    told = arguments(stated)
    for role in roles:
        wanted = told.get(role, role)
        if wanted not in names:
            seen = f"needs a task {display(wanted)} for its {role}, and there is none"
            remedy = f"rename a task, or write --{role}= with the name of one"
            yield refuse(path, seen, remedy)
