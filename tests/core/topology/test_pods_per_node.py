"""How many pods fit on a node."""

from decimal import Decimal

import pytest

from kthena_components.core.topology.node_fit import Amounts, least_of, slots

GPU, CPU = "nvidia.com/gpu", "cpu"


def amounts(**stated: object) -> Amounts:
    names = {"gpu": GPU, "cpu": CPU, "pods": "pods"}
    return {names[key]: Decimal(str(value)) for key, value in stated.items()}


@pytest.mark.parametrize(
    ("room", "each", "most"),
    [
        (amounts(gpu=8), amounts(gpu=8), 1),
        (amounts(gpu=8), amounts(gpu=3), 2),
        (amounts(gpu=7), amounts(gpu=8), 0),
        (amounts(cpu=96), amounts(gpu=1), 0),
        (amounts(gpu=-1), amounts(gpu=1), 0),
        (amounts(gpu=8, pods=2), amounts(gpu=1), 2),
        (amounts(gpu=1000), amounts(gpu=1), 110),
        (amounts(gpu=8, cpu="1.5"), amounts(gpu=1, cpu="0.4"), 3),
        (amounts(gpu=8), amounts(gpu=0), 110),
        (amounts(pods="Infinity"), {}, 0),
    ],
)
def test_the_scarcest_resource_decides(room: Amounts, each: Amounts, most: int) -> None:
    assert slots(room, each) == most


def test_what_every_pod_asks_for_is_the_least_of_what_all_name() -> None:
    assert least_of([amounts(gpu=8, cpu=4), amounts(gpu=4)]) == amounts(gpu=4)
    assert least_of([]) == {}
