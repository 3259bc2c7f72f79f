"""Grove: PodCliqueSet."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from kthena_components.core.facts.engine_grouping import EngineTemplate, engines_of
from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import fill_requests, is_serving, relocated
from kthena_components.core.findings import join_path
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.object import KAI, VOLCANO, PodSet, copies_in, pod_set
from kthena_components.core.plan.controller_variables import PodVariables, reference
from kthena_components.core.remedies import write
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.read import (
    count_from_one,
    count_or_unknown,
    is_name,
    mapping,
    name_of,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown, product, total
from kthena_components.systems.grove.rules.pods_counts_startup_sharing_links import (
    grove_counts,
    grove_links,
    grove_pods,
    grove_sharing,
    grove_startup,
)
from kthena_components.systems.grove.rules.scaling_groups_names_gang import (
    grove_gang,
    grove_names,
    grove_scaling_groups,
)
from kthena_components.systems.grove.view import (
    GROVE,
    SET,
    TEMPLATE,
    Clique,
    CliqueSet,
    ScalingGroup,
    kept_cliques,
    read_clique_set,
)
from kthena_components.systems.system import Body, Kind, Restart, System

# Facts and pods of Grove's PodCliqueSet: an engine is one clique, or a scaling group's cliques.
#
# Source: ai-dynamo/grove operator/api/core/v1alpha1 and
# operator/internal/controller/podcliquescalinggroup/components/podclique.


GROUP_PODS = "GROVE_PCSG_TEMPLATE_NUM_PODS"
"""Variable in the containers of a scaling group: the number of pods of all its cliques."""


_OWNERS = {
    True: "$(GROVE_PCS_NAME)-$(GROVE_PCS_INDEX)",
    False: "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)",
}
"""What the names of pods begin with, by whether their clique is outside of scaling groups."""


def facts(view: CliqueSet) -> ServingFacts:
    """Read the facts of a PodCliqueSet."""
    found = view.object
    # The operator creates a PodGang for everything that it starts.
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_hidden(view) if view.gap else _in_order(view)),
        gang_expected=True,
        copies=count_or_unknown(found.spec.get("replicas"), "replicas", 1),
        hosts=hosts(view),
    )


def hosts(view: CliqueSet) -> PodHosts | None:
    """Return the names of the pods in the first copy of the set; None if they are not known.

    Source: ai-dynamo/grove operator/api/common/namegen.go; operator/internal/controller/podclique/
    components/pod/pod.go and podcliquescalinggroup/components/podclique/podclique.go (variables).
    """
    found = view.object
    if view.gap is not None or not is_name(found.name):
        return None
    domain, namespace = f"{found.name}-0", found.stated_namespace
    values = {
        "GROVE_PCS_NAME": str(found.name),
        "GROVE_PCS_INDEX": "0",
        "GROVE_PCSG_INDEX": "0",
        "GROVE_HEADLESS_SERVICE": f"{domain}.{namespace or 'default'}.svc.cluster.local",
    }
    pods, groups = list[HostedPods](), list[str]()
    for group, cliques in view.together():
        owner = domain if group is None else f"{domain}-{group.name}-0"
        groups += [] if group is None else [f"{domain}-{group.name}"]
        pods += [
            HostedPods(
                path=found.at(clique.path),
                prefix=f"{owner}-{clique.name}-",
                count=count_from_one(clique.replicas, "replicas"),
                written=f"{_OWNERS[group is None]}-{clique.name}-0.$(GROVE_HEADLESS_SERVICE)",
            )
            for clique in cliques
        ]
    # With several groups, the variable has another value in each.
    group_of = {"GROVE_PCSG_NAME": groups[0]} if len(groups) == 1 else {}
    return PodHosts(
        domain=domain,
        pods=tuple(pods),
        variables={**values, **group_of},
        of_copy=frozenset({"GROVE_PCSG_INDEX"}),
        namespace=namespace,
    )


def _in_order(view: CliqueSet) -> Iterator[EngineFacts]:
    """Return the engines, with why their workers wait for their leaders.

    Source: ai-dynamo/grove operator/initc/internal/wait.go, which waits until pods are ready.
    """
    path = view.object.at(f"{TEMPLATE}.cliqueStartupType")
    kind = view.template.get("cliqueStartupType")
    why = f"is {kind}, with which Grove starts the workers only after their leader is ready"
    order = StartOrder(path=path, why=why, remedy=write("CliqueStartupTypeAnyOrder"))
    names = {view.object.at(clique.path): clique.name for clique in view.cliques}
    waits = view.waiting()
    for engine in _engines(view):
        leader, late = names.get(engine.path), names.get(engine.worker_template(names))
        yield replace(engine, order=order) if waits(late, leader) else engine


def _hidden(view: CliqueSet) -> Iterator[EngineFacts]:
    at, pods = view.object.at(TEMPLATE), Unknown("the cliques are not known yet")
    entry = read_pod(HIDDEN, f"{at}.cliques", context=view.object.context)
    name = name_of(view.object.body)
    yield EngineFacts(path=at, name=name, pods=pods, replicas=1, entry=entry, worker=None)


def _engines(view: CliqueSet) -> Iterator[EngineFacts]:
    """Read the engines of a set; those of a scaling group have its replicas."""
    for group, parts in parts_of(view):
        if group is None:
            yield from engines_of(parts)
            continue
        engines = engines_of(parts, count_from_one(group.fields.get("replicas"), "replicas"))
        name = group.name if isinstance(group.name, str) else "?"
        for engine in engines:
            yield replace(engine, name=f"{name}-{engine.name}" if len(engines) > 1 else name)


def parts_of(view: CliqueSet) -> Iterator[tuple[ScalingGroup | None, list[EngineTemplate]]]:
    """Return the templates of each scaling group, and those of the other cliques.

    Commands decide which of them form an engine.
    """
    alone = list[EngineTemplate]()
    for group, members in view.together():
        pods = total(count_from_one(clique.replicas, "replicas") for clique in members)
        known = group is not None and isinstance(pods, int)
        env = {GROUP_PODS: str(pods)} if known else {}
        parts = [_part(view, clique, env) for clique in members]
        if group is None:
            alone += parts
        else:
            yield group, parts
    # Cliques outside of scaling groups may be an engine, too: one in each copy of the set.
    joined = engines_of(alone)
    if len(joined) == 1 and joined[0].worker is not None:
        yield None, alone
    else:
        yield from ((None, [part]) for part in alone)


def _part(view: CliqueSet, clique: Clique, env: Mapping[str, str]) -> EngineTemplate:
    return EngineTemplate(
        path=view.object.at(clique.path),
        name=clique.name if isinstance(clique.name, str) else "?",
        count=count_from_one(clique.replicas, "replicas"),
        template={"spec": clique.pod},
        pod=_pod(view, clique, env),
    )


def _pod(view: CliqueSet, clique: Clique, env: Mapping[str, str]) -> PodFacts:
    """Read a podSpec, which has no surrounding template."""
    at, context = view.object.at(f"{clique.at}.podSpec"), view.object.context
    spec = HIDDEN if unknown_in(clique.pod) else clique.pod
    pod = fill_requests(read_pod({"spec": spec}, "", env, context=context))
    return relocated(pod, lambda path: path.replace("spec.", f"{at}.", 1))


# The pods of a PodCliqueSet's cliques, and which of them start together.
#
# A clique's labels and annotations are those of its pods. Source: ai-dynamo/grove
# operator/internal/controller/podclique/components/pod/pod.go.


_CLIQUES = Unknown("the cliques are not known yet")
_CONTAINERS = Unknown("the containers are not known yet")


def pods_of_cliques(view: CliqueSet) -> Iterator[PodSet]:
    """Return the pods of each clique."""
    found, sets = view.object, copies_in(view.object.spec.get("replicas"), 1)
    groups, spread = _groups(view), _spread(view)
    if unknown_in(view.template.get("cliques")):
        number, at = product(sets, _CLIQUES), f"{TEMPLATE}.cliques"
        yield pod_set(found, at, _CLIQUES, number, by_controller=True)
    for clique in view.cliques:
        spec = _CONTAINERS if unknown_in(clique.pod) else clique.pod
        own = copies_in(clique.replicas, 1)
        yield pod_set(
            found,
            f"{clique.at}.podSpec",
            {"metadata": clique.fields, "spec": spec},
            product(sets, groups[clique.name], own),
            numbered=own,
            by_controller=True,
            spread=found.at(clique.path) in spread,
            written=partial(_written, clique),
        )


def _written(clique: Clique, path: str) -> str:
    """Map a path of a pod: labels are in the clique, the rest in its podSpec."""
    if path.startswith("metadata."):
        return join_path(clique.path, path.removeprefix("metadata."))
    return f"{clique.at}.podSpec.{path.removeprefix('spec.')}"


def _groups(view: CliqueSet) -> dict[object, MaybeInt]:
    """Count, by clique name, how often a clique occurs in one copy of the set."""
    gap = view.gap
    found: dict[object, MaybeInt] = {clique.name: _CLIQUES if gap else 1 for clique in view.cliques}
    for group in () if gap else reversed(view.groups):
        names = (name for name in group.cliques if isinstance(name, str))
        found.update(dict.fromkeys(names, copies_in(group.fields.get("replicas"), 1)))
    return found


def _spread(view: CliqueSet) -> set[str]:
    """Return the paths of the cliques whose pods form engines of several pods."""
    found: set[str] = set()
    for _, parts in parts_of(view):
        engines = engines_of(parts)
        wide = {e.path for e in engines if isinstance(e.pods, int) and e.pods > 1}
        joined = (part.path for part in parts if is_serving(part.pod))
        found.update(wide, joined if wide and len(engines) == 1 else ())
    return found


_QUEUE, _KAI_QUEUE = "scheduling.grove.io/volcano-queue", "kai.scheduler/queue"


def gangs(view: CliqueSet) -> Iterator[Gang]:
    """Return the pods of one copy of a set that start together, and their queue.

    These are minAvailable pods of each clique, in minAvailable copies of its scaling group. The
    webhook rejects cliques with several schedulers or queues. Without a queue it is `default` in
    Volcano, and KAI's backend rejects the set.

    Source: ai-dynamo/grove operator/internal/scheduler/volcano/queue.go and backend.go since
    v0.1.0-alpha.10, kai/backend.go resolveQueueNameForPodCliqueSet, and
    operator/internal/webhook/admission/pcs/defaulting/podcliqueset.go (minAvailable).
    """
    names = [mapping(clique.pod).get("schedulerName") for clique in view.cliques]
    scheduler = next((name for name in (VOLCANO, KAI) if name in names), "")
    found = _queue(view, scheduler)
    if view.gap is not None or found is None:
        return
    held = {str(name): group for group in view.groups for name in group.cliques}
    yield Gang(
        owner=view.object,
        title="each copy of the set",
        pods=tuple(
            (pods, _pods_started_together(clique, held.get(str(clique.name))))
            for pods, clique in zip(pods_of_cliques(view), view.cliques, strict=True)
        ),
        queue=found[1],
        queue_path=found[0],
        scheduler=scheduler,
    )


def _pods_started_together(clique: Clique, group: ScalingGroup | None) -> MaybeInt:
    """Return how many pods of a clique start together in one copy of the set."""
    stated = clique.spec.get("minAvailable")
    own = copies_in(clique.replicas if stated is None else stated, 1)
    return product(1 if group is None else copies_in(group.fields.get("minAvailable"), 1), own)


def _queue(view: CliqueSet, scheduler: str) -> tuple[str, MaybeText | None] | None:
    """Return the path and the name of the queue of a set; None if its gang is in none."""
    if not scheduler:
        return None
    key = _KAI_QUEUE if scheduler == KAI else _QUEUE
    places = [("metadata", view.object.metadata)]
    places += [(clique.path, clique.fields) for clique in view.cliques]
    for at, fields in places:
        for field in ("labels", "annotations") if scheduler == KAI else ("annotations",):
            stated = text(mapping(fields.get(field)).get(key), "")
            if stated != "":
                name = stated.strip() if isinstance(stated, str) else stated
                return f"{at}.{field}.{key}", name
    return None if scheduler == KAI else (f"metadata.annotations.{key}", "")


_GROUP = "-".join(map(reference, ("GROVE_PCSG_NAME", "GROVE_PCSG_INDEX")))
_OF_SET = ("GROVE_PCS_", "GROVE_PCLQ_", "GROVE_HEADLESS_SERVICE")
_DOMAIN = reference("GROVE_HEADLESS_SERVICE")


def _by_hand(body: Body) -> str:
    """Describe how pods restart if only their deletion restarts them.

    Source: ai-dynamo/grove operator/api/core/v1alpha1/podcliqueset.go, UpdateStrategyType.
    """
    strategy = mapping(mapping(mapping(body).get("spec")).get("updateStrategy"))
    deleted = strategy.get("type") == "OnDelete"
    return "a pod restarts when it is deleted" if deleted else ""


def pod_variables(view: CliqueSet) -> PodVariables:
    """Return the number of a pod in its clique, and the address of the leader's.

    Source: ai-dynamo/grove operator/api/common/constants/constants.go, and
    operator/internal/controller/podclique/components/pod/pod.go.
    """
    leaders = {engine.path for engine in facts(view).engines}
    grouped = view.grouped
    names = [c.name for c in view.cliques if is_name(c.name) and view.object.at(c.path) in leaders]
    return PodVariables(
        size=(GROUP_PODS,),
        ordinal=("GROVE_PCLQ_POD_INDEX",),
        addresses=tuple(
            rf"{_GROUP}-{re.escape(str(name))}-0\.{_DOMAIN}" for name in names if name in grouped
        ),
        others=("GROVE_",),
        # Without a scaling group, no pod is told about one.
        exactly=_OF_SET if view.gap is None and not grouped else None,
    )


SYSTEM = System(
    name="grove",
    title="Grove PodCliqueSet",
    kinds=(
        Kind(
            group=GROVE,
            name=SET[1],
            view=read_clique_set,
            facts=facts,
            pods=pods_of_cliques,
            gangs=gangs,
            rules=(
                grove_names,
                grove_counts,
                grove_scaling_groups,
                grove_startup,
                grove_pods,
                grove_gang,
                grove_sharing,
                grove_links,
            ),
            kept=kept_cliques,
            # Labels, annotations, podSpec and priorityClassName: operator/internal/controller/
            # common/component/utils/podclique.go, ComputePCLQPodTemplateHash.
            restarts=Restart(
                paths=r"spec\.template\.(priorityClassName\b"
                r"|cliques(\[\d+\])?(\.(spec\.podSpec|labels|annotations)\b|$))",
                how="one replica after another restarts",
                otherwise=_by_hand,
            ),
            copies="replicas",
            pod_variables=pod_variables,
            without={
                "templates": "a clique has a podSpec and separate labels instead of a template",
                "production-labels": "Grove labels its pods app.kubernetes.io/name and part-of",
            },
        ),
    ),
)
