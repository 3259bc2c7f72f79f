"""The wheel alone is enough: what it holds, and what it imports."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DECLARED = {"pulumi", "pulumi_kubernetes", "pydantic", "pydantic_core", "tabulate", "yaml"}
DECLARED |= {"tree_sitter", "tree_sitter_bash"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Unpack the wheel, as pip would."""
    made = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(made / "unpacked")
    return made / "unpacked"


def test_the_wheel_holds_the_package_and_says_that_it_is_typed(unpacked: Path) -> None:
    top = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {"kthena_components"}
    assert (unpacked / "kthena_components" / "py.typed").exists()
    assert (unpacked / "kthena_components" / "core" / "models" / "known_models.json").exists()
    held = {path.name for path in (unpacked / "kthena_components/core/hardware").glob("*.json")}
    assert held == {"gpus.json", "instances.json", "machines.json"}
    made = {path.relative_to(unpacked) for path in unpacked.rglob("kthena_components/**/*.py")}
    assert made == {p.relative_to(ROOT) for p in ROOT.glob("kthena_components/**/*.py")}
    assert (unpacked / "kthena_components" / "checker" / "levels.json").exists()
    assert (unpacked / "kthena_components" / "provider" / "schema.json").exists()
    templates = {
        path.relative_to(ROOT)
        for path in ROOT.glob("kthena_components/templates/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(templates) > 20
    assert not [path for path in templates if not (unpacked / path).is_file()]


def test_the_wheel_brings_its_programs(unpacked: Path) -> None:
    (stated,) = unpacked.glob("*.dist-info/entry_points.txt")
    programs = {line.partition(" = ")[0] for line in stated.read_text().splitlines() if "=" in line}
    assert programs == {"kthena-components", "pulumi-resource-kthena"}


def test_every_module_of_the_wheel_imports_without_the_checkout(
    unpacked: Path, tmp_path: Path
) -> None:
    program = f"""
import importlib, pkgutil, sys
sys.path.insert(0, {str(unpacked)!r})
import kthena_components
for module in pkgutil.walk_packages(kthena_components.__path__, "kthena_components."):
    importlib.import_module(module.name)
for name in kthena_components.__all__:
    getattr(kthena_components, name)
own = [m.__file__ for n, m in sys.modules.items() if n.startswith("kthena_components")]
print(all(file.startswith({str(unpacked)!r}) for file in own), len(own) > 30)
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("True True", "")


def test_the_package_imports_nothing_but_what_it_declares() -> None:
    allowed = DECLARED | {"kthena_components"} | set(sys.stdlib_module_names)
    extra = {
        "kthena_components/cluster": {"kubernetes", "urllib3"},
        "kthena_components/cli": {"argcomplete", "rich"},
        "kthena_components/placement": {"ortools"},
        "kthena_components/policies": {"pulumi_policy"},
    }
    imported = {
        (name.split(".")[0], str(path.relative_to(ROOT).parent))
        for path in ROOT.glob("kthena_components/**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _names(node)
    }
    assert {(n, at) for n, at in imported if n not in allowed | extra.get(at, set())} == set()


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
