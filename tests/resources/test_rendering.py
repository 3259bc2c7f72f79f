"""Rendered files have no annotations that only Pulumi's provider reads."""

from typing import Any

import pulumi

from kthena_components.core import naming
from kthena_components.resources._apply import mark_rendering
from tests.resources.build import serving
from tests.support.recorder import record
from tests.support.specs import ENGINE_RAY, REMOVED, Args, changed

ONE_OBJECT = changed(ENGINE_RAY, {"backend": "kthena", "expose": REMOVED})
DIRECTORY = "kubernetes:renderYamlToDirectory"
QUEUE = "scheduling.volcano.sh/queue-name"


def annotations(args: Args, *, config: str = "", provider: str = "") -> Any:
    """Give the annotations of the only object."""

    def program() -> None:
        if config:
            pulumi.runtime.set_all_config({DIRECTORY: config})  # of this program alone
        opts = None
        if provider:
            made = pulumi.ProviderResource("kubernetes", provider, {})
            if provider == "rendering":
                mark_rendering(made)
            opts = pulumi.ResourceOptions(provider=made)
        serving(args, opts)

    seen = record(program)
    assert seen.error is None
    (made,) = (one for one in seen.resources if one.type.startswith("kubernetes:workload."))
    return made.props["metadata"].get("annotations")


FOR_PULUMI = {"pulumi.com/deletionPropagationPolicy", "pulumi.com/waitFor", naming.STACK}


def test_what_is_deployed_says_what_the_provider_waits_for() -> None:
    assert set(annotations(ONE_OBJECT)) == FOR_PULUMI
    deployed = annotations(ONE_OBJECT, provider="cluster")
    assert set(deployed) == FOR_PULUMI


def test_what_is_rendered_has_no_such_annotation() -> None:
    assert annotations(ONE_OBJECT, config="rendered") is None
    assert annotations(ONE_OBJECT, provider="rendering") is None


def test_a_provider_of_the_program_comes_before_the_config() -> None:
    assert annotations(ONE_OBJECT, config="rendered", provider="cluster") is not None


def test_annotations_that_others_read_are_rendered() -> None:
    queued = {**ONE_OBJECT, "queue": "research"}
    assert annotations(queued, config="rendered") == {QUEUE: "research"}
