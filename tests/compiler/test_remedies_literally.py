"""What the component says of wrong arguments: each fix, applied literally, works."""

from collections.abc import Iterator

import pytest

from kthena_components.core.findings import Finding, SpecError
from kthena_components.systems import EMITTERS
from tests.rules.following import Judge, faults, wrong_way
from tests.support.refusals import judged
from tests.support.specs import ALL, Args, changed
from tests.systems.test_remedies import servings
from tests.test_bad_input import CASES, BadInput


def findings_of(args: Args) -> list[Finding]:
    return list(judged(args)[1])


def say(case: BadInput) -> Judge:
    def judge(args: Args) -> list[Finding]:
        try:
            return list(case.compile(args).findings)
        except SpecError as error:
            return list(error.findings)

    return judge


def misled(judge: Judge, args: Args) -> Iterator[tuple[str, object, str]]:
    before = judge(args)
    for found in faults(before):
        for fix in found.fixes:
            if why := wrong_way(judge, args, before, found, fix):
                yield str(found), [change.as_json() for change in fix], why


@pytest.mark.parametrize("name", CASES)
def test_each_fix_of_a_wrong_input_works(name: str) -> None:
    case = CASES[name]
    assert list(misled(say(case), changed(case.args, case.changes))) == []


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("backend", EMITTERS)
def test_each_fix_of_what_a_backend_refuses_works(backend: str, example: str) -> None:
    wrong, fixes = list[tuple[str, object, str]](), 0
    for args in servings(backend, example):
        fixes += sum(len(found.fixes) for found in faults(findings_of(args)))
        wrong += misled(findings_of, args)
    assert wrong == []
    assert fixes
