"""What is fed with what: each target draws an input, and then takes it in as a user would."""

import json
import pickle
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import yaml

from kthena_components.checker.check_cluster_objects import StackOptions, check_objects_together
from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.levels import Levels
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.update_rules import check_change
from kthena_components.cli.check.files import CheckOptions, check
from kthena_components.cli.check.reports import FORMATS
from kthena_components.cli.check.results import Summary
from kthena_components.cli.review.command import check_updates
from kthena_components.cli.review.comment import write_comment
from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import reviewed
from kthena_components.cluster.doctor import check_stack_file
from kthena_components.cluster.stack_servings import StackFileError, read_stack_file
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.schema.versions import KTHENA_VERSIONS
from kthena_components.core.values.unknown import Blank
from kthena_components.reading.files import Unreadable
from tests.toughness.corpus import OTHER_TYPES, of_another_type
from tests.toughness.guard import check as guarded
from tests.toughness.mutate import Body, case_places, change, manifest, text
from tests.toughness.previews import preview
from tests.toughness.scripts import started

TODAY = date(2026, 6, 30)
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Something that takes inputs of a kind."""

    make: Callable[[random.Random, Path, int], Any]
    """Draw an input, or give one by its number. It may write files into the folder."""
    take: Callable[[Any, Path], object]
    """Take an input in. It may read files of the folder, and raises nothing."""


@dataclass(frozen=True, kw_only=True)
class Manifests:
    """Objects, and in which way they are judged."""

    bodies: list[Body]
    version: str
    written: bytes = field(default=b"", repr=False)
    """The same as a file, which may be broken as well; empty where it is not read as one."""
    form: str = "text"
    whole: bool = False


def _manifests(draw: random.Random, _folder: Path, _number: int) -> Manifests:
    way = draw.randrange(30)
    many = 1 if way > 1 else draw.randrange(2, 7)
    bodies = [manifest(draw) for _ in range(many)]
    if way == 1:
        bodies[1] = pickle.loads(pickle.dumps(bodies[0]))  # noqa: S301 - a copy
        change(draw, bodies[1])
    return Manifests(
        bodies=bodies,
        version=draw.choice(KTHENA_VERSIONS),
        written=_written(draw, bodies) if way in {0, 2} else b"",
        form=draw.choice([*FORMATS] if draw.randrange(8) == 0 else ["text", "markdown"]),
        whole=draw.randrange(2) == 0,
    )


def _written(draw: random.Random, bodies: list[Body]) -> bytes:
    """Write objects as a file, which may get other characters."""
    made = "\n---\n".join(_dumped(draw, body) for body in bodies)
    return (text(draw, made, YAML) if draw.randrange(2) else made).encode(errors="surrogatepass")


def _dumped(draw: random.Random, body: object) -> str:
    try:
        if draw.randrange(3) == 0:
            return json.dumps(body)
        dumper = _Dumper if draw.randrange(2) else yaml.CSafeDumper
        return yaml.dump(body, Dumper=dumper, allow_unicode=True)
    except (TypeError, ValueError):  # a key, bytes or a half character that JSON or YAML has not
        return repr(body)


for _each in (yaml.SafeDumper, yaml.CSafeDumper):
    _each.add_representer(Blank, yaml.representer.SafeRepresenter.represent_str)


class _Dumper(yaml.CSafeDumper):
    """Writes no alias."""

    def ignore_aliases(self, _: object) -> bool:
        return True


YAML = (
    "&a ", "*a", "<<: *a", "---\n", "...\n", "? ", "- ", ": ", "{", "}", "[", "]",
    "!!python/none ''", "!!binary ", "!x ", "%YAML 1.9\n", "|\n", ">-\n", "#", "\t", "\x00",
    "\ufeff", "\u2028", "'", '"', "&", "kind: ConfigMap\n", "apiVersion: v1\n", "~", ".nan", "\r",
    "\ud800", "  ",
)  # fmt: skip


def _judge(given: Manifests, _: Path) -> None:
    bodies, first = given.bodies, given.bodies[0]
    for body in bodies:
        one = partial(check_manifest, body, today=TODAY, versions={"kthena": given.version})
        guarded(body, one)
    if len(bodies) > 1:
        guarded(bodies, lambda: check_change(first, bodies[1]))
        guarded(bodies, lambda: compare_objects(bodies, complete=given.whole))
        named = {f"n{i}": body for i, body in enumerate(bodies)}
        guarded(
            bodies,
            lambda: check_objects_together(named, TODAY, budget=9, gpu_types=["nvidia.com/gpu"]),
        )
    if given.written:
        _check(given)


def _check(given: Manifests) -> None:
    """Check a file as the command does, which reads it from standard input."""
    told: list[str] = []
    report, summary = FORMATS[given.form](told.append), Summary()
    before, sys.stdin = sys.stdin, TextIOWrapper(BytesIO(given.written))
    try:
        asked = StackOptions(whole=given.whole, budget=3, gpu_types=("nvidia.com/gpu",))
        for result in check(["-"], CheckOptions(today=TODAY, asked=asked), summary):
            report.skip(result) if isinstance(result, Unreadable) else report.add(result)
        report.close(summary)
    finally:
        sys.stdin = before
    assert told
    assert not summary.faults


def _places(_draw: random.Random, _folder: Path, number: int) -> Manifests:
    """Give the objects of a case, of which one place is left out or holds another type."""
    stored, index, place = case_places()[number % len(case_places())]
    bodies: list[Body] = pickle.loads(stored)  # noqa: S301 - from above
    value = OTHER_TYPES[number % len(OTHER_TYPES)]
    bodies[index] = of_another_type(bodies[index], place, value)
    return Manifests(bodies=bodies, version=KTHENA_VERSIONS[-1], whole=number % 2 == 0)


def _scripts(draw: random.Random, _folder: Path, _number: int) -> tuple[Body, Body]:
    return started(draw)


def _read_script(given: tuple[Body, Body], _: Path) -> None:
    body, config_map = given
    around = Context(config_maps=gather([config_map]))
    guarded(given, lambda: check_manifest(body, context=around))


def _previews(draw: random.Random, _folder: Path, _number: int) -> str:
    return preview(draw)


def _review(given: str, _: Path) -> None:
    try:
        found = parse_preview("dev", given)
    except (ValueError, RecursionError):  # which it says of what is not a preview
        return
    said = list(check_updates(found, Levels(), TODAY))
    assert write_comment([reviewed(found, said)])


@cache
def _stacks() -> tuple[bytes, ...]:
    """Give the stacks that there are, each with its project."""
    project, *stacks = (
        yaml.safe_load(path.read_text())
        for path in (ROOT / "Pulumi.yaml", *sorted((ROOT / "stacks").glob("*.yaml")))
    )
    return tuple(pickle.dumps((project, stack)) for stack in stacks)


def _stack_files(draw: random.Random, folder: Path, _number: int) -> tuple[str, str]:
    project, stack = pickle.loads(draw.choice(_stacks()))  # noqa: S301 - from above
    if draw.randrange(6) == 0:
        _, other = pickle.loads(draw.choice(_stacks()))  # noqa: S301 - from above
        stack = {"config": {**other["config"], **(stack.get("config") or {})}}
    for _ in range(draw.choice((0, 1, 1, 2, 4, 15))):
        change(draw, stack)
    if draw.randrange(6) == 0:
        change(draw, project)
    files = _dumped(draw, {**project, "stackConfigDir": "."}), _dumped(draw, stack)
    if draw.randrange(4) == 0:
        files = files[0], text(draw, files[1], YAML)
    for name, content in zip(("Pulumi.yaml", "Pulumi.dev.yaml"), files, strict=True):
        file = folder / name
        file.unlink(missing_ok=True)  # ext4 writes a file that is emptied to the disk at once
        file.write_bytes(content.encode(errors="surrogatepass"))
    return files


def _read_stack(_: tuple[str, str], folder: Path) -> None:
    try:
        read = read_stack_file(folder, "dev")
    except StackFileError:  # which it says of what cannot be looked at
        return
    assert all(map(str, check_stack_file(read)))


TARGETS: Mapping[str, Target] = {
    "manifests": Target(make=_manifests, take=_judge),
    "places": Target(make=_places, take=_judge),
    "scripts": Target(make=_scripts, take=_read_script),
    "previews": Target(make=_previews, take=_review),
    "stack files": Target(make=_stack_files, take=_read_stack),
}
