"""A system that nobody has seen: one folder, one row of the index, and everything else follows.

OpenKruise's CloneSet stands for it: pods of one template.
"""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kthena_components.systems as index
from kthena_components.checker import catalogue
from kthena_components.checker.cluster_rules import cluster_rules, compare_objects
from kthena_components.checker.manifest import (
    check_manifest,
    has_rules,
    read_demand,
    read_manifest,
    reduce_object,
)
from kthena_components.cluster.requirements import requirements_of_backends
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from tests.support.specs import ENGINE_RAY, changed
from toolchain.pages import kinds, rules

KIND = ("apps.kruise.io", "CloneSet")
FILES = {
    "__init__": '"""OpenKruise."""\n',
    "view": """
from collections.abc import Iterator
from dataclasses import dataclass
from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.values.read import inside

@dataclass(frozen=True, slots=True, kw_only=True)
class Clones:
    object: Object
    template: object

def read_clones(found: Object) -> Clones:
    return Clones(object=found, template=inside(found.body.get("spec"), "template"))

def pods(view: Clones) -> Iterator[PodSet]:
    number = copies_in(view.object.spec.get("replicas"), 1)
    yield pod_set(view.object, "spec.template", view.template, number)
""",
    "facts": """
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.facts.workload import read_template
from kthena_components.core.values.read import name_of

def facts(view):
    found, name = view.object, name_of(view.object.body)
    at, spec = found.at("spec.template"), found.spec
    engines = read_template(view.template, at, name, spec, found.context)
    return ServingFacts(path=found.path, name=name, engines=tuple(engines))
""",
    "rules": '''
from kthena_components.core.findings import Finding

def set_has_name(view):
    """A set has a name of at most 8 characters.

    Pass: the name chat, 4 characters.
    Fail: the name conversation, 12 characters.
    Source: nobody.
    """
    if len(str(view.object.name)) > 8:
        yield Finding(
            path="metadata.name", seen="is long", remedy="cut it", rule="set-has-name"
        )
''',
    "emit": """
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.manifest import Resource
from kthena_components.core.plan.serving_plan import targets_of_groups
from kthena_components.systems.emitter import Emitter

def emit(plan):
    body = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": plan.name},
        "spec": {"replicas": plan.groups, "template": plan.roles[0].entry},
    }
    return (Manifest(body=body),)

EMITTER = Emitter(
    emit=emit,
    limits=(),
    refuse=lambda plan: iter(()),
    names=lambda plan: iter(()),
    resources=(
        Resource(
            api_version="apps.kruise.io/v1alpha1",
            kind="CloneSet",
            plural="clonesets",
        ),
    ),
    read_back=lambda bodies: [],
    targets=targets_of_groups,
)
""",
    "system": """
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.systems.kruise.facts import facts
from kthena_components.systems.kruise.rules import set_has_name
from kthena_components.systems.kruise.view import pods, read_clones
from kthena_components.systems.system import Kind, Restart, System

SYSTEM = System(
    name="kruise",
    title="OpenKruise",
    kinds=(
        Kind(
            group="apps.kruise.io",
            name="CloneSet",
            view=read_clones,
            facts=facts,
            pods=pods,
            rules=(set_has_name,),
            templates=("spec.template",),
            kept=kept_pods,
            restarts=Restart(paths=r"spec\\.template", how="pod after pod restarts"),
        ),
    ),
)
""",
}
ENGINE = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.33.0",
    "command": ["vllm", "serve", "meta-llama/Llama-3.3-70B-Instruct", "-tp", "8"],
    "resources": {"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 8}},
    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - NCCL's shared memory
}
SHM = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
CLONES: dict[str, Any] = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "CloneSet",
    "metadata": {"name": "chat"},
    "spec": {"replicas": 3, "template": {"spec": {"containers": [ENGINE], "volumes": SHM}}},
}
CACHES = (
    index.find_kind,
    index.find_emitter,
    catalogue.all_rules,
    catalogue.rule_names,
    catalogue.cluster_rule_names,
    cluster_rules,
    catalogue.public_keys,
)


@pytest.fixture(autouse=True)
def _kruise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write the system's folder, and its row of the index."""
    (tmp_path / "kruise").mkdir()
    for name, text in FILES.items():
        (tmp_path / "kruise" / f"{name}.py").write_text(text)
    monkeypatch.setattr(index, "__path__", [*index.__path__, str(tmp_path)])
    monkeypatch.setattr(index, "INDEX", {**index.INDEX, KIND: "kruise"})
    monkeypatch.setattr(index, "SYSTEMS", (*index.SYSTEMS, "kruise"))
    importlib.invalidate_caches()
    for cache in CACHES:
        cache.cache_clear()
    yield
    for cache in CACHES:
        cache.cache_clear()
    for module in [name for name in sys.modules if ".kruise" in name]:
        del sys.modules[module]


def names(findings: Any) -> set[str]:
    return {finding.rule for finding in findings}


def test_it_is_checked_by_the_rules_of_all_and_by_its_own() -> None:
    assert has_rules(CLONES)
    assert read_manifest(CLONES) is not None
    assert names(check_manifest(CLONES)) == set()
    wrong = changed(
        CLONES,
        {
            "metadata.name": "conversation",
            "spec.template.spec.containers[0].command[4]": "16",
            "spec.template.spec.containers[0].env": [{"name": "A", "value": 8}],
        },
    )
    found = names(check_manifest(wrong))
    assert {"set-has-name", "world-size-equals-gpus", "pod-schema"} <= found


def test_its_pods_are_counted_and_compared() -> None:
    assert read_demand(CLONES) is None, "its pods stand in it"
    kept = reduce_object(CLONES)
    found = compare_objects([kept], budget=16, gpu_types=["amd.com/gpu"], complete=False)
    (budget,) = [str(finding) for finding in found if finding.rule == "gpu-budget"]
    assert "24" in budget
    assert "gpu-type-allowed" in names(found)


def test_it_is_listed_and_documented() -> None:
    assert "set-has-name" in catalogue.rule_names()
    page = rules.render()
    assert "## OpenKruise" in page
    assert "### set-has-name" in page
    assert "| CloneSet | apps.kruise.io | ✓ | 1 | ✓ | ✓ | ✓ |" in kinds.render()


def test_a_plan_is_written_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend is emit.py with its EMITTER, and its name in the index."""
    monkeypatch.setattr(index, "EMITTERS", (*index.EMITTERS, "kruise"))
    index.find_emitter.cache_clear()
    serving = changed(ENGINE_RAY, {"backend": "kruise", "pod_disruption_budget": False})
    (clones,) = compile_serving(serving).manifests
    assert has_rules(clones.body)
    assert [made.plural for made in index.resources_of(["kruise"])] == ["clonesets"]
    (right, *_) = requirements_of_backends("serving", ["kruise"]).rights
    assert (right.group, right.resource) == (KIND[0], "clonesets")
    with pytest.raises(SpecError, match=f"Write one of {', '.join(sorted(index.EMITTERS))}"):
        compile_serving(changed(serving, {"backend": "spark"}))
