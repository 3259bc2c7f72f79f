"""A command loads what it needs: a count of modules, because times differ between machines."""

import subprocess
import sys
from pathlib import Path

import pytest

LOADED = """
import sys
from kthena_components.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stderr.write("\\n" + " ".join(sys.modules))
"""
OURS = "kthena_components"
LIBRARIES = {"pulumi", "pulumi_kubernetes", "pulumi_policy", "kubernetes", "rich", "grpc"}
UNUSED = {
    *("pydantic", "tabulate", "tree_sitter", "multiprocessing", "concurrent.futures"),
    *(
        f"{OURS}.{name}"
        for name in ("compiler", "convert", "cluster", "resources", "provider", "policies")
    ),
    *(f"{OURS}.{name}" for name in ("core.spec", "core.plan.serving_plan", "checker.catalogue")),
    *(f"{OURS}.systems.{name}" for name in ("lws", "kserve", "kaito", "ray", "dynamo")),
    *(f"{OURS}.systems.{name}.emit" for name in ("native", "kthena")),
    *(f"{OURS}.rendering.{name}" for name in ("render", "isolation", "helm", "watcher")),
    *(
        f"{OURS}.cli.{name}"
        for name in ("convert.command", "review.command", "doctor", "status", "rights")
    ),
}
"""What a check of one Deployment loads nothing of."""
POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
      - name: engine
        image: vllm/vllm-openai:v0.11.0
        args: [--model, m, --tensor-parallel-size, "8"]
        resources: {limits: {nvidia.com/gpu: "8"}}
"""


def loaded(*arguments: str) -> set[str]:
    """Return the modules that a command has loaded."""
    run = [sys.executable, "-c", LOADED, *arguments]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stderr
    return set(told.splitlines()[-1].split())


def below(names: set[str], parents: set[str]) -> set[str]:
    """Return the modules that are one of some packages or in one."""
    prefixes = tuple(f"{parent}." for parent in parents)
    return {name for name in names if name in parents or name.startswith(prefixes)}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_an_option_without_a_command_loads_no_command(option: str) -> None:
    assert {name for name in loaded(option) if name.startswith(OURS)} == {
        OURS, f"{OURS}.cli", f"{OURS}.cli.main",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "most"), [("check", 30), ("doctor", 20), ("status", 20), ("policy-pack", 100)]
)
def test_the_help_of_a_command_loads_no_rules(command: str, most: int) -> None:
    found = loaded(command, "--help")
    assert len({name for name in found if name.startswith(OURS)}) <= most
    assert below(found, {*LIBRARIES, "pydantic", f"{OURS}.core.spec", f"{OURS}.compiler"}) == set()


def test_a_check_of_a_deployment_loads_only_its_rules(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD)
    found = loaded("check", str(tmp_path))
    assert f"{OURS}.checker.manifest" in found
    assert below(found, LIBRARIES | UNUSED) == set()
    assert len({name for name in found if name.startswith(OURS)}) <= 360


@pytest.mark.parametrize("command", ["convert", "review", "rights", "policy-pack"])
def test_no_command_loads_the_libraries_of_another(command: str) -> None:
    assert below(loaded(command, "--help"), LIBRARIES) == set()
