"""Laws that hold for every backend and every serving that it takes."""

import copy
import json
import re
from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core import naming
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Level
from kthena_components.core.objects.object import read_object
from kthena_components.core.spec.serving_spec import ResourcesSpec
from kthena_components.core.values.unknown import product, total
from kthena_components.systems import EMITTERS, find_emitter, find_kind
from kthena_components.systems.emitter import Emitter
from kthena_components.systems.native.facts import read_group
from tests.support.admission import own_findings
from tests.support.crds import schema_errors
from tests.support.specs import ALL, changed, example_for, template
from tests.support.strategies import answering, damaged, law, watched_servings

pytestmark = [pytest.mark.property, pytest.mark.parametrize("backend", EMITTERS)]


LIMITS = {
    "StatefulSet": naming.STATEFUL_SET_NAME,
    **dict.fromkeys(("PodMonitor", "ConfigMap", "ResourceClaimTemplate"), 253),
}
"""The longest name of an object, if it is not that of a label."""


def bodies(compiled: Compiled, *kinds: str) -> list[dict[str, Any]]:
    """Give what was emitted, or the objects of some kinds."""
    return [dict(m.body) for m in compiled.manifests if not kinds or m.kind in kinds]


def read_back(compiled: Compiled) -> list[ServingFacts]:
    """Read the facts from what was emitted, each serving or group on its own."""
    return emitter_of(compiled).read_back(bodies(compiled))


def emitter_of(compiled: Compiled) -> Emitter:
    """Give the emitter that a serving was written by."""
    emitter = find_emitter(compiled.plan.backend)
    assert emitter is not None
    return emitter


def by_role(facts: ServingFacts) -> ServingFacts:
    """Order the engines by role, and leave out roles without any: they make no object."""
    made = [engine for engine in facts.engines if engine.replicas]
    return replace(facts, engines=tuple(sorted(made, key=lambda engine: engine.name)))


def without(roles: set[str], facts: ServingFacts) -> ServingFacts:
    """Leave out some roles."""
    kept = tuple(engine for engine in facts.engines if engine.name not in roles)
    return replace(facts, engines=kept)


@law
@given(st.data())
def test_the_facts_of_a_plan_are_what_its_manifests_say(backend: str, data: st.DataObject) -> None:
    args = data.draw(watched_servings(backend, claims=True))
    compiled = compile_serving(args)
    planned = emitter_of(compiled).planned(compiled.plan)
    # The devices of a claim are in objects beside the serving.
    claiming = {role["name"] for role in args["roles"] if role.get("resources", {}).get("claims")}
    told = [
        [by_role(without(claiming, facts)) for facts in each]
        for each in (read_back(compiled), planned)
    ]
    assert told[0] == told[1]


@law
@given(st.data())
def test_the_api_server_takes_every_manifest(backend: str, data: st.DataObject) -> None:
    args = data.draw(watched_servings(backend, claims=True))
    version = args.get("kthena_version", "1.0")
    assert [e for body in bodies(compile_serving(args)) for e in schema_errors(body, version)] == []


@law
@given(st.data())
def test_the_policies_have_nothing_against_our_manifests(backend: str, data: st.DataObject) -> None:
    args = data.draw(watched_servings(backend, claims=True))
    versions = {"kthena": args.get("kthena_version", "1.0")}
    found = (check_manifest(body, versions=versions) for body in bodies(compile_serving(args)))
    findings = list(chain.from_iterable(found))
    assert [str(finding) for finding in findings if finding.level is Level.MANDATORY] == []


@law
@given(st.data())
def test_the_webhook_of_each_kthena_version_takes_what_is_written_for_it(
    backend: str, data: st.DataObject
) -> None:
    compiled = compile_serving(data.draw(watched_servings(backend, claims=True)))
    version = compiled.plan.kthena_version
    found = [own_findings(b, version=version) for b in bodies(compiled, "ModelServing")]
    assert [str(finding) for findings in found for finding in findings] == []


@law
@given(st.data())
def test_the_longest_name_of_a_pod_is_that_of_a_unit(backend: str, data: st.DataObject) -> None:
    """So an alert finds the pods that the backend says its controller will make."""
    compiled = compile_serving(data.draw(watched_servings(backend, claims=True)))
    emitter, roles = emitter_of(compiled), compiled.plan.roles
    units = emitter.targets(compiled.plan).units
    for facts in emitter.names(compiled.plan):
        place = re.fullmatch(r"roles\[(\d+)\]\.name", facts.path)
        assert place
        own = [unit for unit in units if roles[int(place[1])].name in unit.roles]
        assert not own or roles[int(place[1])].replicas or compiled.plan.autoscaled
        found = [unit for unit in units if re.fullmatch(unit.pods, facts.name)]
        assert not facts.what.endswith("pod") or found == own


@law
@given(st.data())
def test_a_serving_gives_the_same_bytes_each_time(backend: str, data: st.DataObject) -> None:
    args = data.draw(watched_servings(backend, claims=True))
    first, second = (json.dumps(bodies(compile_serving(copy.deepcopy(args)))) for _ in range(2))
    assert first == second


@law
@given(st.data())
def test_the_arguments_are_left_as_they_were(backend: str, data: st.DataObject) -> None:
    args = data.draw(watched_servings(backend, claims=True))
    before = copy.deepcopy(args)
    compile_serving(args)
    assert args == before


@law
@given(st.data())
def test_an_address_is_that_of_each_engine_or_of_none(backend: str, data: st.DataObject) -> None:
    compiled = compile_serving(data.draw(watched_servings(backend, claims=True)))
    plan, found = compiled.plan, emitter_of(compiled).addresses(compiled.plan)
    engines = plan.groups * sum(role.replicas for role in plan.roles)
    assert len(set(found)) == len(found) == (engines if found else 0)


@law
@given(st.data())
def test_no_object_is_made_twice(backend: str, data: st.DataObject) -> None:
    manifests = compile_serving(data.draw(watched_servings(backend, claims=True))).manifests
    made = Counter((m.body["apiVersion"], m.key) for m in manifests)
    assert [key for key, count in made.items() if count > 1] == []


@law
@given(st.data())
def test_what_a_manifest_waits_for_comes_before_it(backend: str, data: st.DataObject) -> None:
    seen: set[str] = set()
    for manifest in compile_serving(data.draw(watched_servings(backend, claims=True))).manifests:
        assert seen.issuperset((*manifest.after, *manifest.replace_with))
        seen.add(manifest.key)


@law
@given(st.data())
def test_every_name_fits(backend: str, data: st.DataObject) -> None:
    for manifest in compile_serving(data.draw(watched_servings(backend, claims=True))).manifests:
        assert naming.DNS_1035.fullmatch(manifest.name)
        assert len(manifest.name) <= LIMITS.get(manifest.kind, naming.DNS_LABEL)


@law
@given(st.data())
def test_another_role_leaves_the_names_of_the_first_alone(
    backend: str, data: st.DataObject
) -> None:
    emitter = find_emitter(backend)
    assert emitter is not None
    fewest = emitter.stays_from
    if fewest is None:
        pytest.skip(f"a serving of backend {backend} has no other role")
    args = data.draw(
        watched_servings(backend, claims=True).filter(
            lambda drawn: fewest <= len(drawn["roles"]) < 4
        )
    )
    args = answering({"expose": {"role": args["roles"][0]["name"]}} | args)
    entry = template(resources={"requests": {"cpu": "1"}})
    role = {"name": "z", "entry_template": entry}
    more = changed(args, {f"roles[{len(args['roles'])}]": role})
    before, after = (compile_serving(each).manifests for each in (args, more))
    assert {m.key for m in before} <= {m.key for m in after}


@law
@given(st.data())
def test_the_pods_that_are_made_are_the_pods_that_were_planned(
    backend: str, data: st.DataObject
) -> None:
    compiled = compile_serving(data.draw(watched_servings(backend, claims=True)))
    context = Context(config_maps=gather(bodies(compiled)))
    role = compiled.plan.roles[0]
    per_pod = (role.stated.resources or ResourcesSpec()).gpus_per_pod
    made = sum(pods_of(body, context, per_pod) for body in bodies(compiled))
    assert made == compiled.plan.pods


def pods_of(body: dict[str, Any], context: Context, per_pod: int) -> int:
    """Count the pods that the controller of an object will make, as its system reads them.

    Without pods in it, they are counted by their GPUs.
    """
    found = read_object(body, context=context)
    kind = find_kind(found.group_kind)
    if kind is None:
        return 0
    view = kind.view(found)
    counts = [one.count for one in (kind.pods(view) if kind.pods else ())]
    if counts:
        assert all(isinstance(count, int) for count in counts)
        return sum(count for count in counts if isinstance(count, int))
    facts = kind.facts(view) if kind.facts and kind.sketch and not kind.demand else None
    if facts is not None:
        one = total(product(engine.pods, engine.replicas) for engine in facts.engines)
        pods = product(facts.copies, one)
        assert isinstance(pods, int)
        return pods
    demand = kind.demand(view) if kind.demand else None
    gpus = 0 if demand is None else demand.gpus
    assert isinstance(gpus, int)
    assert gpus % per_pod == 0
    return gpus // per_pod


@pytest.mark.parametrize("example", ALL)
def test_the_reader_of_one_backend_ignores_the_others_objects(backend: str, example: str) -> None:
    compiled = compile_serving(example_for(backend, example))
    assert read_back(compiled)
    for other in set(EMITTERS) - {backend}:
        emitter = find_emitter(other)
        assert emitter is not None
        assert emitter.read_back(bodies(compiled)) == []


@law
@given(st.data())
def test_no_manifest_makes_a_reader_raise(backend: str, data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(sorted(ALL)))
    emitted = bodies(compile_serving(example_for(backend, example)))
    body = data.draw(damaged(data.draw(st.sampled_from(emitted))))
    check_manifest(body)
    read_group([*emitted, body])
