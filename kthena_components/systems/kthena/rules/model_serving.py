"""Checks Kthena's ModelServing.

Each function of RULES is one rule, and its docstring is its documentation. Mandatory rules cover
what the API server or Kthena's webhook rejects; advisory ones what they accept and then ignore.
crds.json defines the fields, roles.py and rollout.py check rules between them.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.remedies import either, remove
from kthena_components.core.schema.versions import KTHENA_VERSIONS, known_version
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, unknown_in
from kthena_components.systems.kthena.rules.roles import (
    kthena_gang_minimum,
    kthena_generated_name,
    kthena_image,
    kthena_replicas,
    kthena_role_count,
    kthena_role_name,
    kthena_role_names_unique,
    kthena_worker_template,
)
from kthena_components.systems.kthena.rules.rollout import (
    kthena_max_surge,
    kthena_recovery_and_rollout,
    kthena_role_budget,
    kthena_rolling_update,
)
from kthena_components.systems.kthena.view import Serving, templates
from kthena_components.systems.system import Rule
from kthena_components.systems.volcano.rules.topology import TOPOLOGY_RULES

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
    kthena_rolling_update,
    kthena_role_budget,
    kthena_max_surge,
    kthena_recovery_and_rollout,
    *TOPOLOGY_RULES,
)
