"""Kubernetes quantities: what the API server reads, and how a sum is written."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.values.quantity import (
    add_resources,
    is_accelerator,
    parse_quantity,
    render_quantity,
)
from tests.support.for_each import for_each
from tests.support.strategies import json_trees, law


@for_each(
    ("text", "number"),
    [
        ("125", "125"),
        ("0.1n", "1e-9"),
        ("-1e-400", "-1e-9"),
        ("0e-400", "0"),
        ("9223372036854775807.0000000001", "9223372036854775807.000000001"),
        ("9223372036854775807Ei", str((2**63 - 1) * 2**60)),
        (8, "8"),
        (8.0, "8"),
        ("500m", "0.5"),
        ("0.1", "0.1"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-1", "-1"),
        ("+1", "1"),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("1124Gi", str(1124 * 2**30)),
        ("1M", str(10**6)),
        ("1G", str(10**9)),
        ("1T", str(10**12)),
        ("1P", str(10**15)),
        ("1E", str(10**18)),
        ("1Mi", str(2**20)),
        ("1Ti", str(2**40)),
        ("1Pi", str(2**50)),
        ("1Ei", str(2**60)),
        ("2e3", "2000"),
        ("2E-3", "0.002"),
        ("7n", "0.000000007"),
        ("7u", "0.000007"),
    ],
)
def test_a_quantity_is_read_in_base_units(text: object, number: str) -> None:
    assert parse_quantity(text) == Decimal(number)


OTHERS: dict[str, object] = {
    "null": None,
    "true": True,
    "list": [],
    "map": {},
    "infinity": float("inf"),
    "not-a-number": float("nan"),
    "long": "9" * 65,
    "huge": 10**5000,
    "arabic-digit": "\N{ARABIC-INDIC DIGIT THREE}",
}


@pytest.mark.parametrize(
    "text", ["", " ", "8 GB", "8GB", "1K", "1ki", "Gi", "--1", "1e", "1e1.5", "1_000"]
)
def test_what_the_api_server_would_refuse_is_none(text: str) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize("text", [" 8", "8 ", "\t8Gi\n"])
def test_blanks_around_an_amount_are_ignored_as_by_go(text: str) -> None:
    assert parse_quantity(text) == parse_quantity(text.strip())


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_what_is_no_quantity_at_all_is_none(value: object) -> None:
    assert parse_quantity(value) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("0", "0"),
        ("250", "250"),
        ("16", "16"),
        ("0.6", "600m"),
        ("1.5", "1500m"),
        ("0.0000001", "0.0000001"),
        (str(1600 * 2**30), "1600Gi"),
        (str(2**40), "1Ti"),
        (str(3 * 2**20), "3Mi"),
        ("-5", "-5"),
    ],
)
def test_a_number_is_written_with_the_largest_exact_suffix(number: str, text: str) -> None:
    assert render_quantity(Decimal(number)) == text


@pytest.mark.property
@law
@given(st.integers(0, 2**63 - 1) | st.decimals(0, 10**6, places=3))
def test_what_is_written_reads_back(number: int | Decimal) -> None:
    assert parse_quantity(render_quantity(Decimal(number))) == number


@pytest.mark.property
@law
@given(json_trees())
def test_reading_never_raises(value: object) -> None:
    parse_quantity(value)


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.10gb",
        "amd.com/gpu",
        "huawei.com/ascend-1980",
        "habana.ai/gaudi",
        "google.com/tpu",
        "example.com/npu",
    ],
)
def test_a_device_that_ranks_run_on_is_an_accelerator(resource: str) -> None:
    assert is_accelerator(resource)


@pytest.mark.parametrize(
    "resource", ["cpu", "memory", "rdma/ib", "nvidia.com/gpus-per-node", "gpu"]
)
def test_other_resources_are_none(resource: str) -> None:
    assert not is_accelerator(resource)


def test_amounts_add_up() -> None:
    total = {"cpu": Decimal(1)}
    more = {"cpu": Decimal(2), "memory": Decimal(3)}
    assert add_resources(total, more, 2) == {"cpu": Decimal(5), "memory": Decimal(6)}
    assert total == {"cpu": Decimal(1)}


def test_what_is_added_no_times_leaves_no_trace() -> None:
    assert add_resources({}, {"cpu": Decimal(1)}, 0) == {}
