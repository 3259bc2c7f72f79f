"""What the measured process runs, and what it says of itself when it ends.

Imported by the process before anything else of ours, so it imports nothing that costs time.
"""

import atexit
import json
import os
import resource
import sys
import time
from pathlib import Path

STARTED = time.perf_counter()


def run() -> None:
    """Run the program that the environment names, inside Pulumi."""
    job = json.loads(os.environ["BENCH_JOB"])
    atexit.register(_report, Path(job["usage"]))
    match job["program"]:
        case "raw":
            from bench.recording import replay
            replay(Path(job["recording"]))
        case "package":
            _package(job)
        case "record":
            from bench.recording import record
            record(lambda: _package(job), Path(job["recording"]))
    job["body"] = time.perf_counter() - STARTED
    global BODY
    BODY = job["body"]

def _package(job) -> None:
    import pulumi
    from kthena_components import ModelServing
    from bench.workload import servings
    provider = pulumi.ProviderResource("kubernetes", "render", {"renderYamlToDirectory": job["render"]}, pulumi.ResourceOptions(version=job["version"]))
    options = pulumi.ResourceOptions(provider=provider)
    for args in servings(job["backend"], job["servings"]):
        ModelServing(args["name"], args, options)


def _report(path: Path) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    path.write_text(json.dumps({
        "seconds": time.perf_counter() - STARTED, "body": BODY,
        "cpu": used.ru_utime + used.ru_stime,
        "rss": used.ru_maxrss, "pydantic": "pydantic" in sys.modules
    }))
