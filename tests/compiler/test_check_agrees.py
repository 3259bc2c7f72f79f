"""What a component writes passes `check` in every environment, or the component says why not."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.cli.check import CheckOptions, check
from kthena_components.cli.results import Result, Summary
from kthena_components.compiler.compile import Compiled, compile_serving
from kthena_components.core.findings import Level, SpecError
from kthena_components.judge.levels import ENVIRONMENTS, Settings, environment_levels
from kthena_components.systems import EMITTERS
from tests.support.specs import REMOVED, changed, template
from tests.support.strategies import law, watched_servings

_POD = "entry_template.spec.containers[0]"
CHANGES: list[tuple[str, Any]] = [
    (f"roles[0].{_POD}.image", "nginx"),
    (f"roles[0].{_POD}.image", "nginx:latest"),
    (f"roles[0].{_POD}.resources", REMOVED),
    (f"roles[0].worker_{_POD.removeprefix('entry_')}.resources", REMOVED),
    (f"roles[0].{_POD}.resources", {"limits": {"cpu": "1"}}),
    ("roles[0].engine.image", "vllm/vllm-openai"),
    ("roles[0].engine.image", "vllm/vllm-openai:latest"),
    ("roles[0].replicas", 0),
    ("replicas", 0),
    ("replicas", 5),
    ("gang_policy", {"min_role_replicas": {"server": 0, "a": 0}}),
    ("network_topology", {"group_policy": {"highest_tier_allowed": 1}}),
    ("network_topology", {"role_policy": {"mode": "hard", "highest_tier_name": "rack"}}),
    ("scheduler_name", "default-scheduler"),
    ("expose", {}),
    ("pod_disruption_budget", True),
    ("queue", "research"),
    ("spread_over", "zone"),
]
"""Changes that components and `check` may judge differently."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("emitted")


def unsaid(compiled: Compiled, folder: Any) -> Iterator[str]:
    """Check what was written as a file, in each environment, and give what nobody said before."""
    file = folder / "objects.json"
    items = [manifest.body for manifest in compiled.manifests]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    versions = {"kthena": str(compiled.plan.kthena_version)}
    for environment in ENVIRONMENTS:
        levels = environment_levels(environment)
        told = {(f.rule, f.level) for f in levels.apply(compiled.findings)}
        settings = Settings(levels=levels, versions=versions)
        for each in check([str(file)], CheckOptions(settings=settings), Summary()):
            assert isinstance(each, Result), each
            finding = each.finding
            if finding.level is Level.MANDATORY and (finding.rule, finding.level) not in told:
                yield f"{environment}: {each.subject}: {finding}"


def _has(args: Mapping[str, Any], path: str) -> bool:
    """Tell whether the first role has its pods from where a path leads."""
    field = path.partition(".")[2].partition(".")[0]
    return not path.startswith("roles") or field in {"replicas", *args["roles"][0]}


@law
@pytest.mark.property
@pytest.mark.parametrize("backend", EMITTERS)
@given(st.data())
def test_check_refuses_nothing_that_the_component_wrote(
    backend: str, folder: Any, data: st.DataObject
) -> None:
    args = data.draw(watched_servings(backend))
    for path, value in data.draw(st.lists(st.sampled_from(CHANGES), max_size=2)):
        with suppress(LookupError):
            args = changed(args, {path: value} if _has(args, path) else {})
    try:
        compiled = compile_serving(args)
    except SpecError:
        return
    assert list(unsaid(compiled, folder)) == []


@pytest.mark.parametrize("policy", ["group_policy", "role_policy"])
def test_pods_without_requests_are_refused_in_a_hard_topology(policy: str) -> None:
    role = {"name": "server", "entry_template": template()}
    topology = {policy: {"mode": "hard", "highest_tier_allowed": 1}}
    args = {"name": "chat", "roles": [role], "network_topology": topology}
    with pytest.raises(SpecError) as refused:
        compile_serving(args)
    assert [(f.rule, f.path) for f in refused.value.findings] == [
        ("gang-requests", "roles[0].entry_template.spec.containers")
    ]
    for way in (
        {f"network_topology.{policy}": {"mode": "soft"}},
        {"roles[0].entry_template.spec.containers[0].resources": {"requests": {"cpu": "1"}}},
        {"roles[0].replicas": 0},
    ):
        assert compile_serving(changed(args, way)).findings == ()


def test_a_gang_of_no_pods_has_no_pod_group() -> None:
    role = {"name": "server", "replicas": 0, "entry_template": template()}
    assert compile_serving({"name": "chat", "roles": [role]}).manifests == ()


def test_a_gang_in_which_nothing_starts_together_is_told() -> None:
    role = {"name": "server", "replicas": 2, "entry_template": template()}
    args = {"name": "chat", "roles": [role], "gang_policy": {"min_role_replicas": {"server": 0}}}
    assert [f.rule for f in compile_serving(args).findings] == ["gang-minimum-stated"]
