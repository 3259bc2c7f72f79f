"""The program of a measured process, which records its measurements when it ends.

The raw program must not import our modules, so each program has its own imports.
"""

import atexit
import json
import os
import resource
import time
from importlib import import_module
from pathlib import Path
from typing import Any

BEGAN = time.time()
JOB = "BENCH_JOB"
"""Environment variable with the job, as JSON: program, servings, groups, backend and files."""


def main() -> None:
    """Run the program of the job inside Pulumi."""
    job = json.loads(os.environ[JOB])
    atexit.register(_tell, Path(job["usage"]))
    PROGRAMS[job["program"]](job)


def _raw(job: dict[str, Any]) -> None:
    import_module("bench.recording").replay(Path(job["recording"]))


def _record(job: dict[str, Any]) -> None:
    import_module("bench.recording").record(lambda: _package(job), Path(job["recording"]))


def _package(job: dict[str, Any]) -> None:
    deploy = import_module("bench.components").deploy
    deploy(job["backend"], job["servings"], job["rendered"], job.get("groups", 1))


def _stack(_job: dict[str, Any]) -> None:
    import_module("kthena_components.resources.stack").deploy()


PROGRAMS = {"raw": _raw, "record": _record, "package": _package, "stack": _stack}


def _tell(path: Path) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    said = {
        "began": BEGAN,
        "ended": time.time(),
        "cpu": used.ru_utime + used.ru_stime,
        "rss_kib": used.ru_maxrss,
    }
    path.write_text(json.dumps(said))
