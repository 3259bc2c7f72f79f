"""Checks Kthena's ModelServing.

Each function of RULES is one rule, and its docstring is its documentation. Mandatory rules cover
what the API server or Kthena's webhook rejects; advisory ones what they accept and then ignore.
crds.json defines the fields. RULES also lists the rules of the other files about a ModelServing.
"""

from collections.abc import Iterator

from kthena_components.core.findings import (
    Finding,
    Level,
    each_of,
    not_checked,
    part_of_rule,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.schema.versions import KTHENA_VERSIONS, known_version
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, text, unknown_in
from kthena_components.core.values.unknown import known
from kthena_components.systems.kthena.rules.entry_names import kthena_entry_names
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
from kthena_components.systems.volcano.rules.names_and_topology import TOPOLOGY_RULES

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
        yield _lost("", seen, f"known: {known}")
    if not view.since("0.2"):
        yield from _version_0_1(view)
    for path, template in templates(view) if not view.since("0.4") else ():
        if mapping(mapping(template.get("metadata")).get("annotations")):
            seen = f"is given, and the controller of Kthena {view.version} crashes on it"
            yield _lost(f"{path}.metadata.annotations", seen, either(remove(), "use Kthena 0.4"))


def _version_0_1(view: Serving) -> Iterator[Finding]:
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
        yield _lost("spec.template.networkTopology", seen, "add gangPolicy, or use Kthena 0.2")


def _lost(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, level=Level.ADVISORY)


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
        seen = f"is {display(given)}, and an image is not blank and contains no space"
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
