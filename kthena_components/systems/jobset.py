"""JobSet: several Jobs as one workload. An engine is on one pod, or on the pods of several Jobs.

Source: kubernetes-sigs/jobset v0.10 api/jobset/v1alpha2/jobset_types.go, pkg/controllers/
jobset_controller.go for the pods of a Job, pkg/util/placement/placement.go for their names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import NO_SCHEDULER, admitted_together
from kthena_components.core.findings import Finding, each_of, refuse, suggest
from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.objects.object import Object, PodSet, copies_in, fields_of_kind, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import PodVariables, first_pod
from kthena_components.core.remedies import or_more, plain, remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    inside,
    is_name,
    mapping,
    name_of,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
    whole,
)
from kthena_components.core.values.unknown import MaybeBool, MaybeInt, Unknown, known, product
from kthena_components.systems.kubernetes.facts import (
    COMPLETION_FIELDS,
    COMPLETION_INDEX,
    indexed_by,
)
from kthena_components.systems.system import PRODUCTION, Kind, System

_MOST = 64
"""Maximum number of Jobs of one entry whose pods are named."""
_HASH = "abcde"
"""Characters that Kubernetes adds to the name of a Job's pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    """One entry of replicatedJobs: equal Jobs."""

    path: str
    """Path of its pod template, in the object."""
    name: str
    template: object
    jobs: MaybeInt
    each: MaybeInt
    """Pods of one Job that run at a time: at most its completions."""
    completions: MaybeInt | None
    """Pods of one Job with an index, where it is stated. None: it is not, or they have none."""
    indexed: bool
    """Whether its pods have an index, or may have one. The webhook's default is that they have."""

    @property
    def pods(self) -> MaybeInt:
        """Return the pods of all its Jobs."""
        return product(self.jobs, self.each)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """A JobSet."""

    object: Object
    jobs: tuple[ReplicatedJob, ...]


def read_job_set(found: Object) -> JobSet:
    """Read the Jobs, whatever the object contains."""
    listed = enumerate(sequence(found.spec.get("replicatedJobs")))
    return JobSet(object=found, jobs=tuple(_job(item, index) for index, item in listed))


def _job(item: object, index: int) -> ReplicatedJob:
    """Read a replicated job: its pod template, its number of Jobs, and the pods of each."""
    fields = mapping(item)
    spec = inside(inside(item, "template"), "spec")
    name = fields.get("name")
    return ReplicatedJob(
        path=f"spec.replicatedJobs[{index}].template.spec.template",
        name=name if is_name(name) else "?",
        template=inside(spec, "template"),
        jobs=copies_in(fields.get("replicas"), 1),
        each=_at_a_time(mapping(spec)),
        completions=_completions(mapping(spec)),
        indexed=mapping(spec).get("completionMode") != "NonIndexed",
    )


def _completions(spec: Mapping[str, Any]) -> MaybeInt | None:
    stated, mode = spec.get("completions"), spec.get("completionMode")
    indexed = mode in (None, "Indexed")
    return copies_in(stated, 1) if indexed and stated is not None else None


def _at_a_time(spec: Mapping[str, Any]) -> MaybeInt:
    parallelism, completions = (spec.get(key) for key in ("parallelism", "completions"))
    most, wanted = copies_in(parallelism, 1), copies_in(completions, 1)
    if completions is None or isinstance(most, Unknown):
        return most
    return wanted if isinstance(wanted, Unknown) else min(most, wanted)


def pods(view: JobSet) -> Iterator[PodSet]:
    """Yield the pods of each entry."""
    for job in view.jobs:
        yield pod_set(view.object, job.path, job.template, job.pods)


def facts(view: JobSet) -> ServingFacts:
    """Read the facts of a JobSet."""
    found = view.object
    parts = [
        part
        for job in view.jobs
        for part in templates_of(
            job.template, found.at(job.path), job.name, job.pods, found.context
        )
    ]
    places = {found.at(job.path): number for number, job in enumerate(view.jobs)}
    engines = engines_among(parts, found.context)
    numbered = next((_numbered(view, job) for job in view.jobs if not job.indexed), ("", ""))
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_in_order(view, engine, places) for engine in engines),
        gang_expected=_placed_together(view),
        hosts=hosts(view),
        names=tuple(_names(view)),
        numbered_with=numbered,
    )


def _numbered(view: JobSet, job: ReplicatedJob) -> tuple[str, str]:
    """Say how the pods of an entry get numbers; without a fix if there are several entries."""
    how, variable = indexed_by(view.object.at(job.path.removesuffix(".template")))
    return how if len(view.jobs) == 1 else plain(how), variable


def _names(view: JobSet) -> Iterator[NameFacts]:
    """Return the longest names of Jobs and pods, which the webhook checks, and of the coordinator.

    Source: kubernetes-sigs/jobset pkg/webhooks/jobset_webhook.go ValidateCreate: the last Job of an
    entry, the last pod of an indexed one that states its completions, with 6 characters, and the
    subdomain; pkg/controllers/jobset_controller.go CoordinatorEndpoint, which is a label, too.
    """
    found, network = view.object, mapping(view.object.spec.get("network"))
    domain = network.get("subdomain")
    if is_name(domain):
        at = found.at("spec.network.subdomain")
        yield NameFacts(path=at, name=domain, limit=DNS_LABEL, what="Service", made=False)
    if not is_name(found.name):
        return
    first = mapping(found.spec.get("coordinator"))
    if is_name(job := first.get("replicatedJob")) and (domain is None or is_name(domain)):
        numbers = (first.get(key) or 0 for key in ("jobIndex", "podIndex"))
        host = "-".join((found.name, job, *map(str, numbers)))
        yield NameFacts(
            path=found.at("spec.coordinator"),
            name=f"{host}.{domain or found.name}",
            limit=DNS_LABEL,
            what="label jobset.sigs.k8s.io/coordinator",
            part="spec.network.subdomain"
            if domain
            else "the JobSet's or the replicated job's name",
        )
    for job in view.jobs:
        if job.name == "?" or isinstance(job.jobs, Unknown):
            continue
        last = f"{found.name}-{job.name}-{max(job.jobs, 1) - 1}"
        made = {"Job": last}
        if isinstance(job.completions, int):
            made["pod"] = f"{last}-{max(job.completions, 1) - 1}-{_HASH}"
        for what, name in made.items():
            at = found.at("metadata.name")
            yield NameFacts(path=at, name=name, limit=DNS_LABEL, what=what, made=False)


def hosts(view: JobSet) -> PodHosts | None:
    """Return the pods' host names, which only indexed Jobs give; None if not known.

    Source: kubernetes-sigs/jobset api/jobset/v1alpha2/jobset_webhook.go (defaults), and
    pkg/controllers/jobset_controller.go createHeadlessSvcIfNecessary.
    """
    found, network = view.object, mapping(view.object.spec.get("network"))
    domain = network.get("subdomain") or found.name
    jobs = [job for job in view.jobs if job.name != "?"]
    modes = [mapping(mapping(job.template).get("spec")) for job in jobs]
    known = is_name(found.name) and is_name(domain) and len(jobs) == len(view.jobs)
    if not known or unknown_inside(found.spec.get("network")):
        return None
    if any(spec.get("hostname") or spec.get("subdomain") for spec in modes):
        return None
    pods = tuple(
        HostedPods(
            path=found.at(job.path), prefix=f"{found.name}-{job.name}-{number}-", count=job.each
        )
        for job in [job for job in jobs if job.indexed] or jobs
        for number in range(min(job.jobs, _MOST) if isinstance(job.jobs, int) else 1)
    )
    fields = ("enableDNSHostnames", "publishNotReadyAddresses")
    missing, late = (network.get(field) is False for field in fields)
    why = "network.enableDNSHostnames is false" if missing else ""
    remedy = f"write network.{fields[0] if missing else fields[1]}: true"
    if not any(job.indexed for job in jobs):
        why, remedy = "pods of a NonIndexed Job have no host name", "write completionMode: Indexed"
    return PodHosts(
        domain=str(domain),
        pods=pods,
        missing=why,
        remedy=remedy,
        late="network.publishNotReadyAddresses is false" if late else "",
        namespace=found.stated_namespace,
    )


def _in_order(view: JobSet, engine: EngineFacts, places: Mapping[str, int]) -> EngineFacts:
    """Return an engine with why its workers wait for its leader.

    Source: kubernetes-sigs/jobset pkg/controllers/startup_policy.go and depends_on.go.
    """
    leader, late = places.get(engine.path), places.get(engine.worker_template(places))
    if leader is None or late is None:
        return engine
    spec = view.object.spec
    if mapping(spec.get("startupPolicy")).get("startupPolicyOrder") == "InOrder":
        why = "is InOrder, with which each Job starts only after the pods of earlier Jobs are ready"
        at, remedy = "spec.startupPolicy.startupPolicyOrder", write("AnyOrder")
        waits = leader < late
    else:
        why = "names the leader's Job, so these pods start when the leader is ready"
        at, remedy = f"spec.replicatedJobs[{late}].dependsOn", remove()
        named = sequence(mapping(sequence(spec.get("replicatedJobs"))[late]).get("dependsOn"))
        waits = any(mapping(one).get("name") == view.jobs[leader].name for one in named)
    order = StartOrder(path=view.object.at(at), why=why, remedy=remedy)
    return replace(engine, order=order) if waits else engine


def _placed_together(view: JobSet) -> MaybeBool:
    if admitted_together(view.object.metadata):
        return True
    specs = [mapping(mapping(job.template).get("spec")) for job in view.jobs]
    schedulers = [spec.get("schedulerName") for spec in specs]
    return NO_SCHEDULER if any(map(unknown_in, schedulers)) else "volcano" in schedulers


_OWN = "jobset.sigs.k8s.io/"
_JOB = f"{_OWN}job-index"
_MARKS = (
    *("jobset-name", "jobset-uid", "replicatedjob-name", "replicatedjob-replicas"),
    *("global-replicas", "job-index", "job-key", "job-global-index", "group-name"),
    *("group-replicas", "job-group-index", "restart-attempt", "job-restart-attempt"),
    *("in-place-restart-attempt", "priority"),
)


def added_fields(view: JobSet) -> Iterator[str]:
    """Yield the labels and annotations that JobSet and the Jobs give to the pods.

    Source: kubernetes-sigs/jobset pkg/controllers/jobset_controller.go labelAndAnnotateObject; the
    webhook makes Jobs indexed that state no completionMode.
    """
    stated = view.object.spec.get("coordinator") is not None
    for name in (*_MARKS, *(("coordinator",) if stated else ())):
        yield from naming.fields_of_pod(f"{_OWN}{name}")
    yield from fields_of_kind("Job", indexed=any(job.indexed for job in view.jobs))


def pod_variables(view: JobSet) -> PodVariables:
    """Return the number of a pod in its Job, or of its Job if each has one pod.

    JobSet itself sets no variables. Run on JobSet 0.12.0.
    """
    engines, found = facts(view).engines, view.object
    indexed = any(job.indexed for job in view.jobs)
    name, network = name_of(found.body), mapping(found.spec.get("network"))
    addresses = [
        first_pod(f"{name}-{engines[0].name}-0-0", domain, found.metadata.get("namespace"))
        for domain in (network.get("subdomain") or name,)
        if len(engines) == 1 and indexed
    ]
    made = PodVariables(addresses=tuple(addresses), others=(COMPLETION_INDEX,) if indexed else ())
    if all(job.jobs == 1 for job in view.jobs):
        return replace(made, ordinal=made.others, fields=COMPLETION_FIELDS if indexed else ())
    by_job = (f"metadata.labels['{_JOB}']", f"metadata.annotations['{_JOB}']")
    return replace(made, fields=by_job if all(job.each == 1 for job in view.jobs) else ())


def _named(view: JobSet) -> Iterator[tuple[JobSet, str, object, list[object]]]:
    """Yield each name of a replicated job, with those that may stand there."""
    spec, field = view.object.spec, "targetReplicatedJobs"
    listed = [mapping(each) for each in sequence(spec.get("replicatedJobs"))]
    names = [each.get("name") for each in listed]
    if (first := spec.get("coordinator")) is not None:
        yield view, _COORDINATOR, inside(first, "replicatedJob"), names
    rules = sequence(mapping(spec.get("failurePolicy")).get("rules"))
    places = [("spec.successPolicy", spec.get("successPolicy"))]
    places += [(f"spec.failurePolicy.rules[{n}]", rule) for n, rule in enumerate(rules)]
    for at, holder in places:
        for index, name in enumerate(sequence(mapping(holder).get(field))):
            yield view, f"{at}.{field}[{index}]", name, names
    for number, job in enumerate(listed):
        for index, one in enumerate(sequence(job.get("dependsOn"))):
            at = f"spec.replicatedJobs[{number}].dependsOn[{index}].name"
            yield view, at, inside(one, "name"), names[:number]


_COORDINATOR = "spec.coordinator.replicatedJob"


@each_of(_named)
def jobset_names(view: JobSet, path: str, name: object, names: list[object]) -> Iterator[Finding]:
    """The coordinator, policies and dependsOn of a JobSet name its replicated jobs.

    dependsOn names one that stands before. The coordinator is a pod of a Job with an index:
    jobIndex is below the replicas of the replicated job, which states completions, and podIndex is
    below these.

    Pass: coordinator.replicatedJob engine, jobIndex 0, podIndex 0, and completions 2.
    Fail: coordinator.replicatedJob enigne; jobIndex 1 of a replicated job with one replica;
    podIndex 2 with completions 2; a coordinator in a Job that states no completions; dependsOn of
    the first replicated job.
    Level: mandatory. JobSet's webhook rejects it.
    Source: kubernetes-sigs/jobset v0.10 pkg/webhooks/jobset_webhook.go ValidateCreate,
    validateCoordinator and validateFailurePolicy.
    """
    require_known(path, name, view.object.spec.get("replicatedJobs"), *names)
    if not isinstance(name, str):
        return
    if name not in names:
        before = "" if not path.endswith("].name") else " before this one"
        verb, at = ("is", path) if names else ("names", path.removesuffix(".name"))
        seen = f"{verb} {display(name)}, but there is no such replicated job{before}, and JobSet's "
        remedy = suggest(name, [each for each in names if isinstance(each, str)])
        yield refuse(at, f"{seen}webhook rejects that", remedy if names else remove())
    elif path == _COORDINATOR:
        yield from _coordinator(view, view.jobs[names.index(name)], names.index(name))


def _coordinator(view: JobSet, job: ReplicatedJob, place: int) -> Iterator[Finding]:
    """Check the indexes of the coordinator: of its Job, and of its pod there."""
    at, first = "spec.coordinator", mapping(view.object.spec.get("coordinator"))
    spec = f"spec.replicatedJobs[{place}].template.spec"
    if not job.indexed:
        seen = "is NonIndexed, but the coordinator is a pod of this Job, and has an index"
        yield refuse(f"{spec}.completionMode", seen, write("Indexed"))
        return
    if job.completions is None:
        seen = "is missing, but the coordinator is a pod of this Job, which must state it"
        remedy = write(job.each) if isinstance(job.each, int) else "write the number of its pods"
        yield refuse(f"{spec}.completions", seen, remedy)
        return
    paths = (f"spec.replicatedJobs[{place}].replicas", f"{spec}.completions")
    fields, counts = ("jobIndex", "podIndex"), (job.jobs, job.completions)
    for field, part, path, number in zip(fields, ("Job", "pod"), paths, counts, strict=True):
        index, most = known(whole(first.get(field, 0)), f"{at}.{field}"), known(number, path)
        if most == 0:
            seen = f"is 0, but the coordinator is a pod of {display(job.name)}"
            yield refuse(path, seen, or_more(max(index or 0, 0) + 1))
        elif index is not None and not 0 <= index < most:
            has = f"the last {part} of {display(job.name)} has the index {most - 1}"
            fix = write(most - 1, f"write a number from 0 to {most - 1}" if most > 1 else "")
            yield refuse(f"{at}.{field}", f"is {index}, but {has}", fix)


SYSTEM = System(
    name="jobset",
    title="JobSet",
    kinds=(
        Kind(
            group="jobset.x-k8s.io",
            name="JobSet",
            view=read_job_set,
            facts=facts,
            pods=pods,
            rules=(jobset_names,),
            pod_variables=pod_variables,
            added_fields=added_fields,
            templates=("spec.replicatedJobs[].template.spec.template",),
            kept=kept_pods,
            unscalable="has no scale subresource",
            number_in="replicas of each replicated Job",
            without={
                "restarts": "JobSet's webhook refuses other templates while it runs",
                PRODUCTION: "its pods end by themselves",
            },
        ),
    ),
)
