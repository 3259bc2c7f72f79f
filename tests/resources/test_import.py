"""What an import costs, by the modules that it loads."""

import subprocess
import sys

import pytest

import kthena_components


def modules_after(code: str) -> set[str]:
    """Run code in an interpreter of its own and list what it loaded."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_package_alone_loads_neither_pulumi_nor_pydantic() -> None:
    loaded = modules_after("import kthena_components; dir(kthena_components)")
    assert not {"pulumi", "pydantic", "kthena_components.core.spec.model"} & loaded


def test_core_and_backends_work_without_pulumi() -> None:
    loaded = modules_after(
        "import kthena_components.core.plan.model, kthena_components.core.plan.report\n"
        "import kthena_components.compiler.compile, kthena_components.core.rules.serving\n"
        "from kthena_components import EngineKind"
    )
    assert "kthena_components.core.spec.model" in loaded
    assert not {name for name in loaded if name.partition(".")[0].startswith("pulumi")}


def test_components_do_not_load_the_typed_kubernetes_sdk() -> None:
    loaded = modules_after("from kthena_components import ModelServing")
    assert "pulumi" in loaded
    assert not {name for name in loaded if name.partition(".")[0] == "pulumi_kubernetes"}


@pytest.mark.parametrize("name", kthena_components.__all__)
def test_every_public_name_loads_and_is_listed(name: str) -> None:
    assert getattr(kthena_components, name).__name__ == name
    assert name in dir(kthena_components)


def test_an_unknown_name_is_an_attribute_error() -> None:
    message = "module 'kthena_components' has no attribute 'Modelserving'"
    with pytest.raises(AttributeError, match=message):
        kthena_components.Modelserving  # noqa: B018 - the access is what is tested
