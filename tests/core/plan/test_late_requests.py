"""Amounts that are Outputs: their sum is not known, and is not the sum of the others."""

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN
from tests.support.specs import GUIDE, changed

LATE = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
AT = "roles[0].{}.spec.containers[0].resources"


def minimum(args: dict[str, object]) -> dict[str, str]:
    (group,) = (m.body for m in compile_serving(args).manifests if m.kind == "PodGroup")
    amounts: dict[str, str] = group["spec"]["minResources"]
    return amounts


@pytest.mark.parametrize("template", ["entry_template", "worker_template"])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "memory"])
def test_a_gang_asks_for_no_part_of_an_unknown_sum(template: str, resource: str) -> None:
    known = minimum(GUIDE)
    args = changed(GUIDE)
    pod = args["roles"][0][template]["spec"]["containers"][0]
    pod["resources"]["limits"][resource] = LATE
    assert minimum(args) == {key: amount for key, amount in known.items() if key != resource}


def test_limits_are_requests_in_the_pods_and_in_the_sum() -> None:
    assert minimum(changed(GUIDE, {"fill_requests": False})) == minimum(GUIDE)
