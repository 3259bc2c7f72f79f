"""What a ModelServing registers on the kaito backend."""

import pytest

from kthena_components.core.naming import STACK
from tests.resources.build import serving
from tests.support.recorder import UNKNOWN, record
from tests.support.specs import changed, example_for

PRESET = example_for("kaito", "engine-native")


def test_several_engines_are_one_set_after_its_config_map() -> None:
    chat = record(lambda: serving(PRESET))
    made_of = {resource.type.rpartition(":")[2]: resource for resource in chat.resources}
    assert set(made_of) == {
        "ModelServing",
        "ConfigMap",
        "InferenceSet",
        "PodDisruptionBudget",
        "Service",
    }
    config, made = made_of["ConfigMap"], made_of["InferenceSet"]
    assert made.type == "kubernetes:kaito.sh/v1beta1:InferenceSet"
    assert made.request.customTimeouts.create == "3600s"
    assert any(config.name in urn for urn in made.request.dependencies)
    assert made.props["spec"]["template"]["inference"]["config"] == config.name


def test_what_kaito_does_not_apply_is_replaced() -> None:
    chat = record(lambda: serving(changed(PRESET, {"replicas": 1})))
    (made,) = (one for one in chat.resources if one.type.endswith(":Workspace"))
    assert made.request.deleteBeforeReplace
    assert "resource" in list(made.request.replaceOnChanges)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_preview_leaves_out_the_webhook_that_would_miss_the_config_map(replicas: int) -> None:
    """Pulumi's provider asks webhooks in a preview only if everything is known."""
    args = changed(PRESET, {"replicas": replicas})
    for preview in (True, False):
        chat = record(lambda: serving(args), preview=preview)
        (made,) = (r for r in chat.resources if r.kind in {"Workspace", "InferenceSet"})
        assert (made.props["metadata"]["annotations"][STACK] == UNKNOWN) is preview
        spec = made.props["spec"]["template"] if "spec" in made.props else made.props
        assert spec["inference"]["config"].startswith("chat-")
        (config,) = chat.of_kind("ConfigMap")
        assert config.props["metadata"]["annotations"][STACK] != UNKNOWN
