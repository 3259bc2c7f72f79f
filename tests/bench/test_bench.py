"""`python -m bench` from end to end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import ROOT, environment


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT, env=environment(), check=False, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.programs
def test_a_quick_run_measures_everything(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    done = bench("--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(file.read_text())
    cases = [item["case"] for item in data["programs"]]
    assert [(case["command"], case["backend"], case["servings"]) for case in cases] == [
        (command, backend, servings)
        for backend in ("kthena", "native")
        for command, servings in (("preview", 1), ("preview", 3), ("up", 1))
    ]
    assert [item["resources"] for item in data["programs"]] == [5, 11, 5, 11, 29, 11]
    assert [item["same"] for item in data["programs"]] == [None, None, True] * 2
    assert next(iter(data["imports"])) == "pulumi"
    assert len(data["modules"]) == 5
    assert list(data["compile"]) == ["kthena", "native"]
    assert list(data["commands"]) == ["preview", "up"]
    assert data["packs"]["servings"] == 3
    assert data["packs"]["ratio"] > 0
    assert [item["title"] for item in data["checks"]] == [
        "nothing is found", "every serving is wrong",
    ]  # fmt: skip
    assert all(item["objects"] == 24 and item["ratio"] > 1 for item in data["checks"])
    assert len(data["shapes"]) > 50
    # How much longer 30 groups take than 3 depends on what else the machine does.
    assert data["shapes"]["preview of a native serving of 3 and 30 groups"]["ratio"] > 0


def test_without_pulumi_it_says_how_to_get_it(tmp_path: Path) -> None:
    script = (
        "import bench.engine, pathlib\n"
        "try: bench.engine.Engine(pathlib.Path.cwd() / 'x')\n"
        "except bench.engine.BenchError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == "pulumi is not on PATH. Run `make bench`, which finds or builds it.\n"
