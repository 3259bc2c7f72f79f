"""Durations as Go's time.ParseDuration reads them."""

import pytest

from kthena_components.core.values.quantity import read_duration

READ = {
    "0": 0,
    "-0": 0,
    "15s": 15,
    "1m30s": 90,
    "1.5h": 5400,
    ".5m": 30,
    "+2s": 2,
    "-1s": -1,
    "250ms": 0.25,
    "1us": 1e-6,
    "1µs": 1e-6,
    "1h1m1s": 3661,
}
NOT_READ = ("", "15", "s", "1 s", "1d", ".s", "1s ", "+-1s", "1e3s", "٣s", "9999999h", "1s" * 40)


@pytest.mark.parametrize("written", READ)
def test_what_go_reads_has_its_seconds(written: str) -> None:
    assert read_duration(written) == pytest.approx(READ[written])


@pytest.mark.parametrize("written", NOT_READ)
def test_what_go_rejects_has_none(written: str) -> None:
    assert read_duration(written) is None
