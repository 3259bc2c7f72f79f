"""The public args types: what Pulumi's analyzer makes of them, and that they mirror the specs."""

import ast
import inspect
from enum import StrEnum
from types import ModuleType
from typing import Any

import pytest
from pulumi.provider.experimental.analyzer import AnalyzeResult
from pydantic import BaseModel

import kthena_components as public
from kthena_components.core.spec import serving_spec as pods_spec
from kthena_components.core.spec import serving_spec as spec
from kthena_components.core.topology import spec as topology_spec
from kthena_components.provider.schema import ArgsAnalyzer
from kthena_components.resources import args, role_args
from tests.support.for_each import for_each

COMPONENTS = ("ModelServing", "ServingGroup", "Role", "HyperNodeTopology", "Queue")
PAIRS: dict[type, type[BaseModel]] = {
    args.ModelServingArgs: spec.ModelServingSpec,
    args.ServingGroupArgs: spec.StandaloneGroupSpec,
    args.StandaloneRoleArgs: spec.StandaloneRoleSpec,
    args.RoleArgs: spec.RoleSpec,
    args.EngineArgs: spec.EngineSpec,
    args.KvTransferArgs: spec.KvTransferSpec,
    args.ParallelismArgs: spec.ParallelismSpec,
    args.ResourcesArgs: pods_spec.ResourcesSpec,
    args.CacheArgs: pods_spec.CacheSpec,
    args.RdmaArgs: pods_spec.RdmaSpec,
    args.NetworkArgs: pods_spec.NetworkSpec,
    args.SecretKeyArgs: spec.SecretKeySpec,
    args.GangPolicyArgs: spec.GangPolicySpec,
    args.TopologyArgs: spec.TopologySpec,
    args.NetworkTopologyArgs: spec.NetworkTopologySpec,
    args.RolloutStrategyArgs: spec.RolloutStrategySpec,
    args.RollingUpdateArgs: spec.RollingUpdateSpec,
    args.ExposeArgs: spec.ExposeSpec,
    args.QueueArgs: spec.QueueSpec,
    args.HyperNodeTopologyArgs: topology_spec.HyperNodeTopologySpec,
    args.HyperNodeArgs: topology_spec.HyperNodeSpec,
    args.InventoryArgs: topology_spec.InventorySpec,
    args.InventoryNodeArgs: topology_spec.InventoryNodeSpec,
    args.InventoryTierArgs: topology_spec.InventoryTierSpec,
}
NAMED_BY_COMPONENT = {
    args.ModelServingArgs, args.ServingGroupArgs, args.StandaloneRoleArgs, args.QueueArgs,
}  # fmt: skip
each_pair = for_each(("typed", "model"), PAIRS.items(), ids=[typed.__name__ for typed in PAIRS])


@pytest.fixture(scope="module", name="schema")
def analyzed() -> AnalyzeResult:
    return ArgsAnalyzer("kthena").analyze([getattr(public, name) for name in COMPONENTS])


def test_every_input_and_output_is_described(schema: AnalyzeResult) -> None:
    silent = [
        f"{component.name}.{name}"
        for component in schema["component_definitions"].values()
        for name, definition in {**component.inputs, **component.outputs}.items()
        if not definition.description
    ]
    assert silent == []


def test_every_field_of_a_nested_type_is_described(schema: AnalyzeResult) -> None:
    silent = [
        f"{name}.{field}"
        for name, definition in schema["type_definitions"].items()
        for field, described in definition.properties.items()
        if not described.description
    ]
    assert silent == []


def test_free_text_may_be_an_output_and_counts_may_not(schema: AnalyzeResult) -> None:
    engine = schema["type_definitions"]["EngineArgs"].properties
    role = schema["type_definitions"]["RoleArgs"].properties
    assert (engine["image"].plain, engine["model"].plain, role["replicas"].plain) == (
        None, None, True,
    )  # fmt: skip


def test_words_with_few_values_are_enums(schema: AnalyzeResult) -> None:
    known = {name for name, made in schema["type_definitions"].items() if made.enum}
    assert known == {
        "EngineKind", "Gpu", "GpuLabel", "KthenaVersion", "KvConnector", "KvRole", "Launcher",
        "RecoveryPolicy", "RolloutType", "TopologyMode", "VolcanoVersion",
    }  # fmt: skip


@each_pair
def test_args_have_the_fields_of_the_spec(typed: Any, model: type[BaseModel]) -> None:
    assert set(typed.__annotations__) == set(model.model_fields)


@each_pair
def test_args_require_what_the_spec_requires(typed: Any, model: type[BaseModel]) -> None:
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    if typed in NAMED_BY_COMPONENT:
        required -= {"name"}
    assert typed.__required_keys__ == required


@each_pair
def test_args_say_the_defaults_of_the_spec(typed: Any, model: type[BaseModel]) -> None:
    documented = ArgsAnalyzer("kthena")
    for name, field in model.model_fields.items():
        text = " ".join((documented.get_docstring(typed, name) or "").split())
        if isinstance(field.default, bool):
            assert f"Default {str(field.default).lower()}" in text, name
        elif isinstance(field.default, str | int):
            told = (f"Default {field.default}", f"Default: the {name} `{field.default}`")
            assert any(words in text for words in told), name
        elif not field.is_required():
            assert "Default" in text or name in CHOICES, name


CHOICES = {
    "engine", "entry_template", "worker_template", "max_unavailable", "highest_tier_allowed",
    "highest_tier_name", "nodes", "node_regex", "node_labels", "children", "hyper_nodes",
    "inventory", "labels",
}  # fmt: skip
"""Fields without a default to speak of: one of several, or needed by another."""


@pytest.mark.parametrize("module", [args, role_args], ids=lambda m: m.__name__)
def test_words_for_type_checkers_are_those_of_the_enums(module: ModuleType) -> None:
    literals = _literals(module)
    assert literals
    for enum, words in literals:
        assert words == {str(member) for member in enum}, enum.__name__


def _literals(module: ModuleType) -> list[tuple[type[StrEnum], set[str]]]:
    """Read `Enum | Literal[...]` from the branch that never runs."""
    found = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.BinOp(
                left=ast.Name(id=name),
                right=ast.Subscript(value=ast.Name(id="Literal"), slice=words),
            ):
                found.append((getattr(spec, name), set(ast.literal_eval(words))))
            case _:
                pass
    return found
