"""An object of another stack is told in a preview, and no update takes it over.

conformance/pulumi/two_stacks.py does this with the real engine and a real cluster.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.config import kube_config

from kthena_components.core.naming import STACK
from kthena_components.resources import _cluster_objects as _claims
from tests.resources.build import late, serving, unknown
from tests.support.discovery import discovery, paths, tokens
from tests.support.pages import block
from tests.support.recorder import Recorded, attempt, record
from tests.support.specs import ENGINE_RAY, GUIDE

RIVAL = {"kind": "Any", "metadata": {"annotations": {STACK: "organization/project/other"}}}
OURS = {"kind": "Any", "metadata": {"annotations": {STACK: "organization/project/stack"}}}
NOBODYS: dict[str, Any] = {"kind": "Any", "metadata": {}}
TOLD = (
    "belongs to the stack organization/project/other on SERVER, and this is the stack "
    "organization/project/stack, so an update fails. Rename the serving or give it another "
    "namespace; docs/faults.md says how to move an object to another stack. "
    "[object-of-another-stack]"
)
SCALING = {
    "roles": {GUIDE["roles"][0]["name"]: {"min_replicas": 1, "max_replicas": 2}},
    "metrics": [{"name": "waiting", "target_value": "5"}],
    "metric_sources": {"waiting": {"pod": {"name": "vllm:num_requests_waiting"}}},
}
SCALED = {**GUIDE, "backend": "kthena", "backend_options": {"autoscaling": SCALING}}
"""Applied with force, because the autoscaler owns the list of roles."""
Run = Callable[..., tuple[Recorded, list[str]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a program on a cluster in which every object is the given one."""

    def with_objects(
        everything: dict[str, Any], program: Callable[[], object], *, preview: bool
    ) -> tuple[Recorded, list[str]]:
        with discovery(everything=everything) as config:
            path = tmp_path / "kubeconfig"
            path.write_text(config)
            monkeypatch.setenv("KUBECONFIG", str(path))
            monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
            tokens.clear()
            paths.clear()
            address = yaml.safe_load(config)["clusters"][0]["cluster"]["server"]
            seen = attempt(program, preview=preview)
        told = [text for severity, text, _ in seen.logs if severity == "WARNING"]
        told += [str(seen.error)] if seen.error is not None else []
        return seen, [
            text.replace(address, "SERVER") for text in told if _claims.OF_ANOTHER_STACK in text
        ]

    return with_objects


def many() -> None:
    for number in range(_claims.MOST + 2):
        serving({**ENGINE_RAY, "name": f"chat-{number}"}, name=f"chat-{number}")


def test_a_preview_tells_each_serving_of_another_stack(run: Run) -> None:
    seen, told = run(RIVAL, many, preview=True)
    assert seen.error is None
    assert len(told) == _claims.MOST
    assert all(text.endswith(TOLD) for text in told)


def test_the_page_quotes_the_warning() -> None:
    names = {"project/other": "chat/prod", "project/stack": "chat/dev",
             "SERVER": "https://cluster.example:6443"}  # fmt: skip
    shown = f"warning: Service default/chat: {TOLD}\n"
    for name, own in names.items():
        shown = shown.replace(name, own)
    assert block("docs/faults.md", "warning: Service") == shown


@pytest.mark.parametrize("everything", [OURS, NOBODYS])
def test_an_own_object_and_one_of_nobody_are_silent(run: Run, everything: dict[str, Any]) -> None:
    assert run(everything, lambda: serving(ENGINE_RAY), preview=True)[1] == []
    assert tokens


def test_an_update_leaves_it_to_the_api_server(run: Run) -> None:
    seen, told = run(RIVAL, lambda: serving(ENGINE_RAY), preview=False)
    assert (seen.error, told, tokens) == (None, [], [])


def test_what_is_applied_with_force_comes_after_what_is_not() -> None:
    """So the API server rejects another stack before it takes the object over."""
    seen = record(lambda: serving(SCALED))
    (forced,) = [r for r in seen.resources if "patchForce" in str(r.props.get("metadata"))]
    assert forced.kind == "ModelServing"
    assert "AutoscalingPolicy/chat" in seen.waits_for(forced)


def test_a_user_may_take_an_object_over(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "true")
    seen, told = run(RIVAL, lambda: serving(ENGINE_RAY), preview=True)
    assert (seen.error, told, tokens) == (None, [], [])


def test_the_namespace_of_an_output_is_asked_as_soon_as_it_is_known(run: Run) -> None:
    seen, told = run(
        RIVAL, lambda: serving({**ENGINE_RAY, "namespace": late("team-a")}), preview=True
    )
    assert seen.error is None
    assert (
        [text for text in told if "Service team-a/chat-0-decode-0-0: belongs to" in text]
        == told
        != []
    )
    assert "/api/v1/namespaces/team-a/services/chat-0-decode-0-0" in paths
    paths.clear()
    seen, told = run(RIVAL, lambda: serving({**ENGINE_RAY, "namespace": unknown()}), preview=True)
    assert (seen.error, told, paths) == (None, [], [])
