"""Devices that are no whole GPU (whole_gpus), MIG devices, and GPUs from elsewhere."""

from typing import Any

import pytest

from kthena_components.core.facts.devices import DeviceFacts, slices
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.values.unknown import Unknown


def device(resource: str) -> DeviceFacts:
    return DeviceFacts(path="", container="engine", resource=resource, limit=1, request=1)


@pytest.mark.parametrize(
    ("resource", "gib"),
    [
        # The profiles of the MIG user guide, and the suffixes of NVIDIA's device plugin.
        ("nvidia.com/mig-1g.5gb", 5),
        ("nvidia.com/mig-3g.40gb", 40),
        ("nvidia.com/mig-7g.141gb", 141),
        ("nvidia.com/mig-1g.10gb.me", 10),
        ("nvidia.com/mig-1c.3g.20gb", 20),
        ("nvidia.com/mig-1g.5gb.shared", 5),
        ("nvidia.com/gpu", None),
        ("nvidia.com/gpu.shared", None),
        ("nvidia.com/mig-strange", None),
    ],
)
def test_the_name_of_a_mig_device_states_its_memory(resource: str, gib: int | None) -> None:
    found = slices([device(resource)])
    assert (found and found.memory_gib) == gib


def test_several_kinds_of_devices_have_no_one_memory() -> None:
    assert slices([device("nvidia.com/mig-1g.5gb"), device("nvidia.com/gpu")]) is None
    assert slices([]) is None


def gpus(**fields: Any) -> object:
    container = {"name": "engine", "image": "own:1", "command": ["vllm", "serve", "m"], **fields}
    return read_pod({"spec": {"containers": [container]}}, "").gpus


LIMITS = {"limits": {"nvidia.com/gpu": 4}}
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def test_gpus_by_claims_alone_are_not_counted() -> None:
    assert gpus(resources=LIMITS) == 4
    only = gpus(resources={"claims": [{"name": "all"}]})
    assert only == Unknown(
        "container 'engine' gets devices by resource claims, and the pod has no resourceClaim 'all'"
    )


def test_the_container_toolkit_may_give_gpus_without_a_request() -> None:
    told = gpus(env=[{"name": VISIBLE, "value": "all"}])
    assert isinstance(told, Unknown)
    assert VISIBLE in told.because
    assert gpus(env=[{"name": VISIBLE, "value": "void"}]) == 0
    assert gpus(env=[{"name": VISIBLE, "value": "all"}], resources=LIMITS) == 4
