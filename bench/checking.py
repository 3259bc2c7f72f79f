"""Compares `check` with parsing the same files with libyaml, in alternating runs."""

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bench.engine import environment
from bench.workload import BACKENDS, servings
from kthena_components.compiler.compile import compile_serving
from kthena_components.reading.loader import STR, resolve

QUIET_BUDGET: Final = 1.5
"""Maximum processor time of `check` without findings, as a multiple of parsing the same files."""
FINDINGS_BUDGET: Final = 2.0
"""The same where every serving has a finding."""
_PARSE: Final = """\
import pathlib, sys, yaml
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    for _ in yaml.load_all(path.read_bytes(), yaml.CSafeLoader):
        pass
"""


class _Dumper(yaml.CSafeDumper):
    """Writes YAML without aliases, like people and Helm."""

    def ignore_aliases(self, _: object) -> bool:
        """Write no alias."""
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    """Write a string so that Kubernetes reads it as one: a hash such as 551511e3 needs quotes."""
    return dumper.represent_scalar(STR, text, style=None if resolve(text)[0] == STR else "'")


_Dumper.add_representer(str, _text)
_CHECK: Final = "import sys; from kthena_components.cli.main import main; sys.exit(main())"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCost:
    """Processor seconds for the same files, per run."""

    title: str
    objects: int
    budget: float
    """Maximum ratio."""
    parse: list[float]
    check: list[float]

    def ratio(self) -> float:
        """Return the median of the ratios check / parse of each pair of runs."""
        pairs = zip(self.check, self.parse, strict=True)
        return statistics.median(check / parse for check, parse in pairs)


def compare_checks(
    objects: int, repeats: int, progress: Callable[[str], None]
) -> Iterator[CheckCost]:
    """Check manifests without findings, and manifests in which every serving has one."""
    for title, broken, budget in (
        ("nothing is found", False, QUIET_BUDGET),
        ("every serving is wrong", True, FINDINGS_BUDGET),
    ):
        with tempfile.TemporaryDirectory() as folder:
            count = _write(Path(folder), objects, broken=broken)
            progress(f"check: {count:,} objects, {title}")
            parse = [sys.executable, "-c", _PARSE, folder]
            check = [sys.executable, "-c", _CHECK, "check", folder]
            variables = environment()
            runs = [
                (_seconds(parse, 0, variables), _seconds(check, int(broken), variables))
                for _ in range(repeats + 1)
            ][1:]  # the first run compiles the modules
        yield CheckCost(title=title, objects=count, budget=budget, parse=[run[0] for run in runs],
                        check=[run[1] for run in runs])  # fmt: skip


def _write(folder: Path, objects: int, *, broken: bool) -> int:
    """Write the manifests of servings, one file per serving."""
    count = number = 0
    while count < objects:
        for backend in BACKENDS:
            bodies = [m.body for m in compile_serving(_serving(backend, number)).manifests]
            bodies = [_broken(body) for body in bodies] if broken else bodies
            path = folder / f"{backend}-{number}.yaml"
            path.write_text(yaml.dump_all(bodies, Dumper=_Dumper))
            count += len(bodies)
        number += 1
    return count


def _serving(backend: str, number: int) -> dict[str, Any]:
    """Return a serving of a known model, with its own command line."""
    (stated,) = servings(backend, 1)
    stated["name"] = f"llama-{number}"
    stated["roles"][0]["engine"] |= {
        "model": "meta-llama/Llama-3.1-405B-Instruct",
        "extra_args": [f"--seed={number}"],
    }
    return stated


def _broken(body: Any) -> Any:
    """Change the GPUs of pods, so that they do not match the command line."""
    body = deepcopy(body)
    for holder in (body, *body.get("spec", {}).get("template", {}).get("roles", ())):
        for template in _templates(holder):
            for container in template["spec"]["containers"]:
                container["resources"]["limits"]["nvidia.com/gpu"] = "7"
    return body


def _templates(holder: Any) -> Iterator[Any]:
    places = (holder.get("spec", {}).get("template"), holder.get("entryTemplate"),
              holder.get("workerTemplate"))  # fmt: skip
    yield from (place for place in places if place and "containers" in place.get("spec", {}))


def _seconds(command: list[str], code: int, variables: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, check=False, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != code:
        raise RuntimeError(f"{command[3:]} gave {done.returncode}: {done.stderr[-500:]!r}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
