"""What is hidden is never an error: a law over all objects that the tests hold to be right.

Hidden are a field (by an output or a placeholder), a word of a command line or of a script, a
variable of a container, and files and variables in objects that are not there. KTHENA_HIDDEN is
the number of parts that are tried of each object, 2 by default.
"""

import json
import os
import pickle
import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Finding, Level
from kthena_components.core.rules.production import PRODUCTION_NAMES
from tests.rules.cases import TODAY, check_objects_together, documents
from tests.rules.test_cases import CASES
from tests.support.hiding import Body, Hiding, hidings
from tests.support.specs import changed
from tests.toughness.corpus import goldens

_PARTS = int(os.environ.get("KTHENA_HIDDEN", "2"))
_STACKS = 2
"""Stacks are few, so more parts of each are tried."""
_LINES = Path(__file__).parents[1] / "core" / "engines" / "lines.json"
_OF_LINES = 4
"""One line of so many is tried."""
_IMAGES = {"vllm": "vllm/vllm-openai:v", "sglang": "lmsysorg/sglang:v"}
_START = {
    "vllm": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
    "sglang": ["python3", "-m", "sglang.launch_server"],
}
_TWICE = "is given different values"
"""An option that is stated twice: if the second is hidden, the first counts."""
_TOLD = (Level.MANDATORY, Level.ADVISORY)
EXCEPTIONS = {
    "Set the variable in the container's env, or write a number. [size-variables]": "Kubernetes' "
    "own form of a reference, which nothing sets: the finding is advice",
    "because the image is not known": "without an image, a line is checked against the newest "
    "release: the finding is advice, and says so",
    "[image-pinned]": "only in an object whose waiver for it is hidden: such a waiver waives "
    "nothing",
    "are no --node-rank": "a program whose name is hidden is not taken for an engine: scripts "
    "start many others",
}
"""Strings of findings that hiding may add, each with the reason."""


def told(findings: Iterable[Finding]) -> dict[str, str]:
    """Give one finding of each rule that says that something is wrong."""
    return {f.rule: str(f) for f in findings if f.level in _TOLD}


def judged(body: Body, versions: dict[str, str]) -> dict[str, str]:
    asked = PRODUCTION_NAMES
    return told(check_manifest(body, today=TODAY, versions=versions, asked=asked))


@cache
def right() -> tuple[tuple[str, bytes], ...]:
    """Give the single objects that are right: of the cases, what our backends write, and lines."""
    made: dict[bytes, str] = {}
    for case in CASES:
        if case.none is None and case.before is None and case.says is None:
            found = documents(case.base)
            body = changed(found[0], case.set) if len(found) == 1 else {}
            if "apiVersion" in body:
                name = f"{case.rule} {case.kind} {case.number}"
                made.setdefault(pickle.dumps((body, case.versions)), name)
    for name, body in goldens().items():
        made.setdefault(pickle.dumps((body, {})), name)
    for name, body in _lines():
        made.setdefault(pickle.dumps((body, {})), name)
    return tuple((name, key) for key, name in made.items())


def _lines() -> Iterator[tuple[str, Body]]:
    """Give lines that the real parser of a release accepts, drawn by test_real_parsers.py.

    Workers alone are left out: they are reviewed for production with their engine, and without
    --headless they are one.
    """
    for engine, releases in json.loads(_LINES.read_text()).items():
        for release, lines in releases.items():
            for number, (words, accepted) in enumerate(lines):
                is_worker = any(word.startswith("--headl") for word in words)
                if accepted is not None and number % _OF_LINES == 0 and not is_worker:
                    yield f"{engine} {release} {number}", _deployment(engine, release, words)


def _deployment(engine: str, release: str, words: list[str]) -> Body:
    image, command = f"{_IMAGES[engine]}{release}", [*_START[engine], *words]
    container = {"name": "engine", "image": image, "command": command}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def added(hiding: Hiding, before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Give what hiding adds, besides the exceptions.

    Labels say that pods belong to an engine in another object, with which they are reviewed for
    production.
    """
    alone = PRODUCTION_NAMES if {"labels", "metadata"} & {*hiding.place} else ()
    new = [text for rule, text in after.items() if rule not in before and rule not in alone]
    return [text for text in new if not any(known in text for known in EXCEPTIONS)]


def drawn(name: str, body: Body, most: int) -> list[Hiding]:
    """Draw parts to hide, the same in each run."""
    every = [*hidings(body)]
    return random.Random(f"{name} {most}").sample(every, min(most, len(every)))


@pytest.mark.property
def test_hiding_a_part_of_an_object_adds_no_finding() -> None:
    wrong: list[str] = []
    tried = 0
    for name, kept in right():
        body, versions = pickle.loads(kept)  # noqa: S301 - from above
        asked = PRODUCTION_NAMES
        found = check_manifest(body, today=TODAY, versions=versions, asked=asked)
        before, mandatory = told(found), {f.rule for f in found if f.level is Level.MANDATORY}
        if before.keys() & mandatory or _TWICE in before.get("engine-option-known", ""):
            continue  # it is not right: hiding one fault may show another
        for hiding in drawn(name, body, _PARTS):
            tried += 1
            new = added(hiding, before, judged(hiding.of(body), versions))
            wrong += [f"{name}: {hiding}: {text}" for text in new]
    assert wrong == []
    assert tried > 1000


@pytest.mark.property
def test_hiding_a_part_of_one_of_several_objects_adds_no_finding() -> None:
    wrong: list[str] = []
    tried = 0
    for case in CASES:
        found = documents(case.base) if case.none is None and case.base else []
        if len(found) < 2 or case.before is not None or case.says is not None:
            continue
        named = {str(body.get("metadata", body).get("name")): body for body in found}
        named = changed(named, case.set)
        asked: dict[str, Any] = {
            "budget": case.budget,
            "gpu_types": case.gpu_types,
            "versions": case.versions,
        }
        before = told(check_objects_together(named, **asked))
        if before.keys() - PRODUCTION_NAMES:
            continue
        every = [(name, hiding) for name, body in named.items() for hiding in hidings(body)]
        draw = random.Random(f"{case.rule} {case.kind} {case.number}")
        for name, hiding in draw.sample(every, min(_STACKS * _PARTS, len(every))):
            tried += 1
            after = told(check_objects_together({**named, name: hiding.of(named[name])}, **asked))
            wrong += [
                f"{case.rule} {name}: {hiding}: {text}" for text in added(hiding, before, after)
            ]
    assert wrong == []
    assert tried > 300
