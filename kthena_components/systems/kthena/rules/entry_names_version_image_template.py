"""Checks Kthena's ModelServing.

Each function of RULES is one rule, and its docstring is its documentation. Mandatory rules cover
what the API server or Kthena's webhook rejects; advisory ones what they accept and then ignore.
crds.json defines the fields. RULES also lists the rules of the other files about a ModelServing.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    each_of,
    nearest,
    not_checked,
    part_of_rule,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.schema.versions import KTHENA_VERSIONS, known_version
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import mapping, sequence, text, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
from kthena_components.systems.kthena.rules.roles_names_replicas_gang import (
    each_role,
    kthena_gang_minimum,
    kthena_generated_name,
    kthena_replicas,
    kthena_role_count,
    kthena_role_name,
    kthena_role_names_unique,
)
from kthena_components.systems.kthena.rules.rollout_update_surge_budget import (
    kthena_max_surge,
    kthena_recovery_and_rollout,
    kthena_role_budget,
    kthena_rolling_update,
)
from kthena_components.systems.kthena.view import Role, Serving, templates
from kthena_components.systems.system import Rule
from kthena_components.systems.volcano.rules.hypernode_names_topology import TOPOLOGY_RULES

_SHOWN, _NEAR = 4, 40
_BEFORE = regex(r"(?://|(?i:addr|address|host|url|endpoint|leader|master)s?[\"' =]+)$")
_AFTER = regex(r":\d{2,5}(?!\d)")
_FIELDS = ("entryTemplate", "workerTemplate")


def kthena_entry_names(view: Serving) -> Iterator[Finding]:
    """Each name of a pod of a ModelServing in its own command lines and variables is in DNS.

    Kthena makes a Service for the first pod of each instance of a role, SERVING-GROUP-ROLE-NUMBER-0
    with both numbers from 0, if the role has a workerTemplate. Other pods have no names. Read are
    names that begin with the name of the ModelServing and a number, or with it and a role, and end
    with two numbers.

    Pass: --master-addr chat-0-decode-0-0.models in the role decode of ModelServing chat in the
    namespace models, with replicas 1; $(ENTRY_ADDRESS).
    Fail: chat-0-decoder-0-0 without a role decoder; chat-1-decode-0-0 and replicas 1;
    chat-0-decode-0-1, the name of a worker; chat-decode-0-0; chat-0-decode-0-0.default in the
    namespace models.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go (GenerateEntryPod,
    GenerateWorkerPod, CreateHeadlessService) and
    pkg/model-serving-controller/controller/model_serving_controller.go (manageHeadlessService).
    """
    if not isinstance(view.name, str) or not all(isinstance(r.name, str) for r in view.roles):
        return
    roles = {str(role.name): role for role in view.roles}
    for role in view.roles:
        reported: set[str] = set()
        for path, words in _texts(role):
            for found in _own_names(view.name).finditer(words) if view.name in words else ():
                rest = (found[2] or "").strip(".")
                seen, remedy = _not_in_dns(view, roles, found[1], rest)
                if seen and found[0] not in reported and _is_host(view, words, found, rest):
                    reported.add(found[0])
                    yield Finding(path=path, seen=f"has {display(found[0])}, {seen}", remedy=remedy)


@lru_cache(maxsize=1)
def _own_names(serving: str) -> re.Pattern[str]:
    """Return the pattern of names that begin with a ModelServing's name. Few objects need it."""
    begins = re.escape(serving)
    return re.compile(
        rf"(?<![\w.-])({begins}-[a-z0-9-]*-\d{{1,9}}-\d{{1,9}})(?![\w-])(\.[\w.-]*\w)?"
    )


def _is_host(view: Serving, text: str, found: re.Match[str], rest: str) -> bool:
    """Return whether a string surely is an address, and not the name of a model."""
    space, inside = rest.partition(".")[::2]
    is_full = inside.startswith("svc") or space == (view.object.stated_namespace or "default")
    before = text[max(0, found.start() - _NEAR) : found.start()]
    after = text[found.end() : found.end() + len(":65535")]
    return is_full or _BEFORE.search(before) is not None or _AFTER.match(after) is not None


def _texts(role: Role) -> Iterator[tuple[str, str]]:
    """Return the command lines of the containers of a role, and their variables."""
    for field in _FIELDS:
        spec = mapping(mapping(role.fields.get(field)).get("spec"))
        for kind in ("initContainers", "containers"):
            for index, container in enumerate(map(mapping, sequence(spec.get(kind)))):
                yield from _of_container(f"{role.path}.{field}.spec.{kind}[{index}]", container)


def _of_container(path: str, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the paths and the texts of a container that may contain host names."""
    for key in ("command", "args"):
        words = (word for word in sequence(container.get(key)) if isinstance(word, str))
        yield f"{path}.{key}", " ".join(words)
    for index, item in enumerate(map(mapping, sequence(container.get("env")))):
        if isinstance(item.get("value"), str):
            yield f"{path}.env[{index}].value", f"{item.get('name')}={item['value']}"


def _not_in_dns(view: Serving, roles: Mapping[str, Role], name: str, rest: str) -> tuple[str, str]:
    """Explain why a host name is not in DNS, and what to write; two empty strings if it may be.

    Args:
        view: The serving.
        roles: Its roles by name.
        name: The first label of the host name.
        rest: The labels after it.
    """
    serving = str(view.name)
    own = re.fullmatch(r"(\d+)-([a-z].*)-(\d+)-(\d+)", name.removeprefix(f"{serving}-"))
    if own is None:
        short = name.removeprefix(f"{serving}-").rsplit("-", 2)[0]
        right = naming.entry_name(serving, 0, short, 0)
        seen = f"and no pod has this name: the first one of its role is {right}"
        return (seen, f"write {right}") if short in roles else ("", "")
    group, number, rank = int(own[1]), int(own[3]), int(own[4])
    role, right = roles.get(own[2]), naming.entry_name(serving, group, own[2], number)
    first = naming.entry_name(serving, 0, own[2], 0)
    if role is None:
        shown = listing([display(one) for one in [*roles][:_SHOWN]])
        seen = f"but ModelServing {display(serving)} has no role {display(own[2])}: it has {shown}"
        meant = nearest(own[2], roles)
        entry = "" if meant is None else naming.entry_name(serving, 0, meant, 0)
        return seen, f"write {entry or 'the name of the first pod of one of them'}"
    seen = _beyond(group, number, view, role)
    if seen:
        return seen, f"write {first}"
    if rank:
        seen, remedy = "but only the first pod of an instance has a name in DNS", f"write {right}"
    elif role.fields.get("workerTemplate") is None:
        seen = "but Kthena makes no Service for a role without workerTemplate"
        remedy = f"add workerTemplate to the role {display(own[2])}"
    else:
        seen, remedy = _elsewhere(view, rest, right)
    return seen, remedy


def _beyond(group: int, number: int, view: Serving, role: Role) -> str:
    """Explain that there are not as many groups, or instances of a role."""
    for each, stated, what in (
        (group, view.replicas, "groups of the ModelServing"),
        (number, role.replicas, "instances of its role"),
    ):
        if isinstance(stated, int) and each >= max(stated, 1):
            return f"but the number of {what} is {stated}, and they are counted from 0"
    return ""


def _elsewhere(view: Serving, rest: str, right: str) -> tuple[str, str]:
    """Explain that a name has another namespace."""
    space, (named, *more) = view.object.stated_namespace, rest.split(".")
    if not named or not space or named == space or (more and more[0] != "svc"):
        return "", ""
    seen = f"in the namespace {display(named)}, but its pods are in {display(space)}"
    return seen, f"write {right}.{space}"


VERSION = "kthena-version"


def kthena_version(view: Serving) -> Iterator[Finding]:
    """The manifest fits the version of Kthena that will read it.

    0.1 only accepts the scheduler volcano, and crashes on a topology without a gang; before 0.4 the
    controller crashes on annotations in a pod template. The CRD of each version defines the fields.

    Pass: networkTopology.groupPolicy with Kthena 0.2 or later.
    Fail: networkTopology.mode, as 0.1 had it, with Kthena 1.0; 50% as partition with Kthena 0.3.
    Level: mandatory; advisory for what crashes the controller.
    Source: Kthena v0.1.0 pkg/model-serving-controller/webhook/validator.go validateScheduler;
    Kthena v0.3.0 pkg/model-serving-controller/utils/utils.go addPodLabelAndAnnotation.
    """
    if known_version(view.asked) is None:
        known = ", ".join(KTHENA_VERSIONS)
        seen = (
            f"Kthena {display(view.asked)} is not known here, so it was checked as {view.version}"
        )
        yield advise("", seen, f"known: {known}")
    if not view.since("0.2"):
        yield from _version_0_1(view)
    for path, template in templates(view) if not view.since("0.4") else ():
        if mapping(mapping(template.get("metadata")).get("annotations")):
            seen = f"is given, and the controller of Kthena {view.version} crashes on it"
            yield advise(f"{path}.metadata.annotations", seen, either(remove(), "use Kthena 0.4"))


def _version_0_1(view: Serving) -> Iterator[Finding]:
    """Check what only Kthena 0.1 needs: the scheduler volcano, and a gang with a topology."""
    scheduler, path = view.spec.get("schedulerName"), "spec.schedulerName"
    if gap := unknown_in(scheduler):
        yield not_checked(path, gap)
    elif scheduler is None or (isinstance(scheduler, str) and scheduler != "volcano"):
        is_what = "is missing" if scheduler is None else f"is {display(scheduler)}"
        seen = f"{is_what}, but Kthena 0.1 only accepts the scheduler volcano"
        yield Finding(path=path, seen=seen, remedy="write volcano, or use Kthena 0.2")
    topology, gang = view.template.get("networkTopology"), view.template.get("gangPolicy")
    if topology is not None and gang is None:
        seen = "is given without gangPolicy, and the controller of Kthena 0.1 crashes on it"
        yield advise("spec.template.networkTopology", seen, "add gangPolicy, or use Kthena 0.2")


def kthena_image(view: Serving) -> Iterator[Finding]:
    """An image is not blank and contains no space. Init containers are not checked.

    Pass: vllm/vllm-openai:v0.33.0; no image.
    Fail: 1 space alone; a space before the tag.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateWorkerImages and
    validateImageField.
    """
    for path, template in templates(view):
        containers = mapping(template.get("spec")).get("containers")
        for index, container in enumerate(
            containers if isinstance(containers, list | tuple) else ()
        ):
            at = f"{path}.spec.containers[{index}].image"
            yield from check_image(at, mapping(container).get("image"))


@part_of_rule
def check_image(path: str, stated: object) -> Iterator[Finding]:
    """Check an image as Kthena's webhooks do; a missing one is valid."""
    given = known(text(stated), path)
    if given and (" " in given or not given.strip()):
        seen = f"is {display(given)}, but the name of an image is not empty and has no spaces"
        yield Finding(path=path, seen=seen, remedy="write registry/name:tag")


@each_of(each_role)
def kthena_worker_template(view: Serving, role: Role) -> Iterator[Finding]:
    """Workers need a template. Rejected since 0.4; before, Kthena created no workers or crashed.

    Pass: workerReplicas 1 and a workerTemplate; workerReplicas 0.
    Fail: workerReplicas 1 and no workerTemplate.
    Level: mandatory; advisory before 0.4.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateWorkerReplicas.
    """
    if role.fields.get("workerTemplate") is not None:
        return
    path = f"{role.path}.workerTemplate"
    workers = known(role.workers, path)
    if workers is not None and workers > 0:
        ends = "its controller crashes" if view.since("0.3") else "starts no worker"
        ends = "" if view.since("0.4") else f", and Kthena {view.version} accepts it but {ends}"
        yield Finding(
            path=path,
            seen=f"is missing, but workerReplicas is {workers}{ends}",
            remedy=either(
                "add workerTemplate",
                write(0, "write workerReplicas: 0", at=f"{role.path}.workerReplicas"),
            ),
            level=Level.MANDATORY if view.since("0.4") else Level.ADVISORY,
        )


RULES: tuple[Rule[Serving], ...] = (
    kthena_version,
    kthena_generated_name,
    kthena_role_name,
    kthena_image,
    kthena_role_count,
    kthena_role_names_unique,
    kthena_replicas,
    kthena_gang_minimum,
    kthena_worker_template,
    kthena_entry_names,
    kthena_rolling_update,
    kthena_role_budget,
    kthena_max_surge,
    kthena_recovery_and_rollout,
    *TOPOLOGY_RULES,
)
