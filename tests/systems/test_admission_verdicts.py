"""What is checked of whole objects is what the validators of their systems answer to them.

Each file of verdicts/ holds small objects, and of each change whether the CRD and the validator of
that release take it: their published tests have such a case, or their source says so.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.schema.versions import VERSIONS, known_version
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, changed
from tests.toughness.corpus import places, put
from tests.toughness.guard import check

ODD: tuple[object, ...] = ([[1]], {"a": []}, 7)
FILES = sorted((Path(__file__).parent / "verdicts").glob("*.yaml"))


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One object, and what its system answers."""

    system: str
    of: str
    release: str
    body: dict[str, Any]
    is_accepted: bool
    what: str

    def __str__(self) -> str:
        answer = "accepted" if self.is_accepted else "refused"
        return f"{self.system} {self.of} {answer}: {self.what}"


def read_verdicts(path: Path) -> list[Verdict]:
    stated = yaml.safe_load(path.read_text())
    found = []
    for case in stated["cases"]:
        assert case.keys() <= {"of", "accepted", "refused", "set", "without", "release"}, case
        assert ("accepted" in case) != ("refused" in case), case
        body = changed(stated["objects"][case["of"]], case.get("set"))
        found.append(
            Verdict(
                system=path.stem,
                of=case["of"],
                release=case.get("release", stated["release"]),
                body=changed(body, dict.fromkeys(case.get("without", ()), REMOVED)),
                is_accepted="accepted" in case,
                what=case.get("accepted") or case["refused"],
            )
        )
    return found


VERDICTS = [verdict for path in FILES for verdict in read_verdicts(path)]


def test_every_system_with_tables_of_crds_has_verdicts() -> None:
    assert {path.stem for path in FILES} == set(VERSIONS)
    assert len({str(verdict) for verdict in VERDICTS}) == len(VERDICTS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_something_of_every_kind_is_accepted(path: Path) -> None:
    verdicts = read_verdicts(path)
    kinds = {verdict.body["kind"] for verdict in verdicts}
    assert {v.body["kind"] for v in verdicts if v.is_accepted} == kinds
    assert all(known_version(verdict.release, path.stem) for verdict in verdicts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_whatever_stands_in_a_field_no_rule_fails(path: Path) -> None:
    tried = set()
    for verdict in read_verdicts(path):
        for place in places(verdict.body):
            if place[0] in {"apiVersion", "kind"} or (verdict.of, place) in tried:
                continue
            tried.add((verdict.of, place))
            for odd in ODD:
                check((verdict.of, place), partial(check_manifest, put(verdict.body, place, odd)))
    assert tried


@for_each("verdict", VERDICTS, ids=str)
def test_an_object_is_checked_as_its_system_answers(verdict: Verdict) -> None:
    findings = check_manifest(verdict.body, versions={verdict.system: verdict.release})
    mandatory = [str(finding) for finding in findings if finding.level is Level.MANDATORY]
    assert (mandatory == []) == verdict.is_accepted, mandatory
