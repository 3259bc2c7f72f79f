"""Measures imports in a new interpreter, with compiled modules."""

import re
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from bench.engine import ROOT, environment

OURS: Final = "import kthena_components; from kthena_components import ModelServing"
FIRST: Final = (
    "from kthena_components.compiler.compile import compile_serving\n"
    "from bench.workload import servings\n"
    "compile_serving(servings('native', 1)[0])"
)
ONE_CHECK: Final = "check of one Deployment"
_CHECK: Final = (
    "from contextlib import redirect_stdout, suppress\n"
    "from io import StringIO\n"
    "from kthena_components.cli.main import main\n"
    "with redirect_stdout(StringIO()), suppress(SystemExit):\n"
    "    main(['check', 'tests/systems/kubernetes/bases/deployment.yaml'])"
)
CASES: Final[Mapping[str, str]] = {
    "pulumi": "import pulumi",
    "pulumi, pydantic": "import pulumi, pydantic; pydantic.BaseModel",
    "kthena_components": OURS,
    "kthena_components, one serving compiled": f"{OURS}\n{FIRST}",
    ONE_CHECK: _CHECK,
}
_TIMED: Final = "import time\nbegan = time.process_time()\n{}\nprint(time.process_time() - began)"
_LINE: Final = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
_MARK: Final = "import sys; sys.stderr.write('MARK\\n')"


def measure_imports(repeats: int) -> dict[str, float]:
    """Return the median of each case in milliseconds of processor time, in alternating runs."""
    times: dict[str, list[float]] = {case: [] for case in CASES}
    for turn in range(repeats + 1):
        for case, code in CASES.items():
            seconds = float(_python("-c", _TIMED.format(code)).stdout)
            if turn:  # the first run compiles
                times[case].append(seconds * 1000)
    return {case: statistics.median(found) for case, found in times.items()}


def costly_modules(repeats: int, count: int) -> list[tuple[str, float]]:
    """Return the slowest modules, in milliseconds, without those that Pulumi loads.

    Python's own timer slows down every import, so only the proportions are meaningful.
    """
    runs = [_own_times() for _ in range(repeats + 1)][1:]
    medians = {
        name: statistics.median(run.get(name, 0) for run in runs) / 1000
        for name in {name for run in runs for name in run}
    }
    return sorted(medians.items(), key=lambda item: -item[1])[:count]


def _own_times() -> dict[str, int]:
    code = f"import pulumi\n{_MARK}\n{OURS}"
    told = _python("-X", "importtime", "-c", code).stderr.partition("MARK")[2]
    return {name: int(microseconds) for microseconds, name in _LINE.findall(told)}


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
