"""What an import costs, by the modules that it loads."""

import subprocess
import sys

import pytest

import kthena_components
from kthena_components import systems
from tests.support.for_each import for_each


def modules_after(code: str) -> set[str]:
    """Run code in an interpreter of its own and list what it loaded."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def ours(loaded: set[str], below: str = "") -> set[str]:
    """Give the modules of this package, named from a folder of it."""
    start = f"kthena_components.{below}"
    return {name.removeprefix(start) for name in loaded if name.startswith(start)}


def test_the_package_alone_loads_neither_pulumi_nor_pydantic() -> None:
    loaded = modules_after("import kthena_components; dir(kthena_components)")
    assert not {"pulumi", "pydantic"} & loaded
    assert not ours(loaded)


def test_core_and_backends_work_without_pulumi() -> None:
    loaded = modules_after(
        "import kthena_components.core.plan.serving_plan, kthena_components.core.plan.report\n"
        "import kthena_components.compiler.compile, kthena_components.core.rules.registry\n"
        "from kthena_components import EngineKind"
    )
    assert "kthena_components.core.spec.serving_spec" in loaded
    assert not {name for name in loaded if name.partition(".")[0].startswith("pulumi")}


def test_words_are_there_without_models() -> None:
    loaded = modules_after("from kthena_components import EngineKind, KthenaVersion")
    assert ours(loaded, "core.spec.") == {"enums"}
    assert "pydantic" not in loaded


def test_the_public_names_load_nothing_that_compiles_or_checks() -> None:
    loaded = modules_after("from kthena_components import *; ModelServing, Queue, TopologyArgs")
    assert not {"pydantic", "tabulate", "kubernetes"} & loaded
    assert not ours(loaded, "systems.")
    assert not ours(loaded, "compiler.")
    assert not ours(loaded, "core.rules.")
    assert not ours(loaded, "core.engines.")
    assert ours(loaded, "core.plan.") == {"manifest"}


SERVING = """
from kthena_components.compiler.compile import compile_serving
role = {"name": "a", "engine": {"kind": "vllm", "image": "vllm/vllm-openai:v0.11.0", "model": "m"}}
role["resources"] = {"cpu": "8", "memory": "64Gi"}
role |= FIELDS
role["engine"]["port"] = 8000
compile_serving({"name": "a", "roles": [role], "backend": "BACKEND", "backend_options": OPTIONS})
"""
OPTIONS = {"kaito": {"instance_type": "p5.48xlarge"}}
"""Those without which a backend takes no serving."""
FIELDS = {"booster": {"name": "leader", "cache": {"claim": "models", "download": True}}}
"""Fields of the role without which a backend takes no serving."""
BESIDE = {"system", "emitter", "kubernetes", "volcano"}
BASES = {"matrixinfer": {"kthena"}, "booster": {"kthena"}}
"""Systems that build on others, as the contract `systems` in pyproject.toml allows."""


@pytest.mark.parametrize("backend", systems.EMITTERS)
def test_a_serving_loads_its_own_backend_and_no_reader_of_yaml(backend: str) -> None:
    program = SERVING.replace("OPTIONS", str(OPTIONS.get(backend, {})))
    program = program.replace("FIELDS", str(FIELDS.get(backend, {})))
    loaded = modules_after(program.replace("BACKEND", backend))
    parts = [tuple(name.split(".")) for name in ours(loaded, "systems.")]
    assert {part[0] for part in parts} - BESIDE == {backend} | BASES.get(backend, set())
    assert not {part for part in parts if part[-1].startswith(("rules", "stack", "schema"))}
    assert not {"yaml", "tabulate", "kubernetes"} & loaded
    assert not ours(loaded, "checker.") - {"waivers"}
    assert not ours(loaded, "core.topology.")


TOPOLOGY = """
from kthena_components.resources._compiled import DESCRIBED
DESCRIBED["HyperNodeTopology"]({"hyper_nodes": [{"name": "a", "tier": 1, "nodes": ["n"]}]})
"""


def test_a_topology_loads_what_a_serving_does_not() -> None:
    loaded = modules_after(TOPOLOGY)
    assert {"spec", "hypernode_tree"} <= ours(loaded, "core.topology.")
    assert "volcano.emit_cluster" in ours(loaded, "systems.")


def test_components_do_not_load_the_typed_kubernetes_sdk() -> None:
    loaded = modules_after("from kthena_components import ModelServing")
    assert "pulumi" in loaded
    assert not {name for name in loaded if name.partition(".")[0] == "pulumi_kubernetes"}


@for_each("name", kthena_components.__all__)
def test_every_public_name_loads_and_is_listed(name: str) -> None:
    assert getattr(kthena_components, name).__name__ == name
    assert name in dir(kthena_components)


def test_an_unknown_name_is_an_attribute_error() -> None:
    message = "module 'kthena_components' has no attribute 'Modelserving'"
    with pytest.raises(AttributeError, match=message):
        kthena_components.Modelserving  # noqa: B018 - the access is what is tested
