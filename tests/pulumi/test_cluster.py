"""Stacks for a cluster that is not there, and rendering on a machine that has one."""

from pathlib import Path

import pytest
import yaml

from tests.pulumi.lives import OWN
from tests.support.discovery import discovery
from tests.support.engine import ROOT, Stack

pytestmark = pytest.mark.programs
CONTENT = {
    "current-context": "staging",
    "users": [{"name": "me", "user": {"token": "t"}}],
    "contexts": [{"name": "staging", "context": {"cluster": "here", "user": "me"}}],
    "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
}
FILE = "stacks/Pulumi.staging.yaml: kthena-components:"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(CONTENT))
    return path


def test_an_update_is_refused_and_a_preview_warns(tmp_path: Path, kubeconfig: Path) -> None:
    stack = Stack.make(ROOT, "staging", tmp_path, {"KUBECONFIG": str(kubeconfig)})
    finding = (
        f"{FILE}output: is cluster, but context 'staging' of {kubeconfig}, https://127.0.0.1:1, "
        "does not answer: Connection refused. Start it or connect to it, choose another one with "
        "kubeconfig and context, or write output: render. [cluster-unreachable]"
    )
    previewed, refused = stack.preview(), stack.up()
    assert previewed.code == 0
    assert previewed.messages[0] == (
        f"{finding}\nThis preview only uses the state; an update fails until then."
    )
    assert previewed.ops("ModelServing") == {"create": 2}, "the component and the custom resource"
    assert refused.code != 0
    assert refused.messages[0] == (
        f"stack 'staging' is refused, and nothing was changed: 1 problem\n  {finding}"
    )
    assert "Traceback" not in refused.text
    assert not stack.resources


def test_a_cluster_without_kthena_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with discovery("workload.serving.volcano.sh/v1alpha1") as text:
        path = tmp_path / "kubeconfig"
        path.write_text(text)
        server = yaml.safe_load(text)["clusters"][0]["cluster"]["server"]
        finding = (
            f"{FILE}servings[0]: creates a ModelServing of workload.serving.volcano.sh/v1alpha1, "
            f"which {server} does not serve. Install Kthena 1.0 with its CRDs, or write backend: "
            "native. [kind-unserved]"
        )
        stack = Stack.make(ROOT, "staging", tmp_path, {"KUBECONFIG": str(path)})
        previewed, refused = stack.preview(), stack.up()
    assert previewed.code == 0, previewed.text
    assert previewed.messages[0].startswith(finding)
    assert refused.messages[0] == (
        f"stack 'staging' is refused, and nothing was changed: 1 problem\n  {finding}"
    )
    assert not stack.resources


def test_a_context_that_there_is_not_is_refused_in_a_preview_too(
    tmp_path: Path, kubeconfig: Path
) -> None:
    stack = Stack.make(ROOT, "staging", tmp_path, {"KUBECONFIG": str(kubeconfig)})
    stack.change(lambda config: config.update({f"{OWN}context": "stagin"}))
    run = stack.preview()
    assert run.code != 0
    assert run.messages[0] == (
        "stack 'staging' is refused, and nothing was changed: 1 problem\n"
        f"  {FILE}context: there is no context 'stagin' of {kubeconfig}. Write 'staging'. "
        "[kubeconfig]"
    )


def test_a_program_of_ones_own_hears_of_the_cluster_from_the_provider(
    tmp_path: Path, kubeconfig: Path
) -> None:
    variables = {"KUBECONFIG": str(kubeconfig)}
    stack = Stack.make(ROOT / "examples" / "ten-lines", "dev", tmp_path, variables)
    run = stack.up()
    assert run.code != 0
    assert any(
        text.startswith("configured Kubernetes cluster is unreachable") for text in run.messages
    )
    assert "Traceback" not in run.text


def test_rendering_asks_no_cluster(tmp_path: Path, kubeconfig: Path) -> None:
    stack = Stack.make(ROOT, "dev", tmp_path, {"KUBECONFIG": str(kubeconfig)})
    run = stack.up()
    assert run.code == 0, run.text
    assert stack.rendered()
    assert "kubeconfig" not in stack.state_text.lower()


def test_a_kubeconfig_that_would_make_the_provider_ask_for_a_password_is_refused(
    tmp_path: Path, kubeconfig: Path
) -> None:
    kubeconfig.write_text(yaml.safe_dump({**CONTENT, "users": []}))
    stack = Stack.make(ROOT, "dev", tmp_path, {"KUBECONFIG": str(kubeconfig)})
    refused = stack.up()
    assert refused.code != 0
    assert refused.messages[0].endswith("Run with KUBECONFIG=/dev/null. [kubeconfig]")
    stack.variables["KUBECONFIG"] = "/dev/null"
    assert stack.up().code == 0


def test_files_are_exchanged_for_objects_when_the_output_changes(
    tmp_path: Path, kubeconfig: Path
) -> None:
    stack = Stack.make(ROOT, "dev", tmp_path, {"KUBECONFIG": str(kubeconfig)})
    stack.up()
    stack.change(lambda config: config.update({f"{OWN}output": "cluster"}))
    objects = stack.preview().changes
    assert objects["replace"] == len(stack.rendered())
