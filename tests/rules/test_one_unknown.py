"""A law of all rules: one value that is not known yet breaks none, and hides nothing elsewhere."""

import copy
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kthena_components.core.findings import RULE_FAULT, Finding, Level
from tests.rules.cases import Case, documents
from tests.rules.test_cases import CASES
from tests.support.for_each import for_each
from tests.support.specs import REMOVED
from tests.toughness.corpus import LATE

_EACH = 2
"""Leaves of each case that are tried, drawn by the name of the case."""
_ITEM = re.compile(r"(.*?)\[([^\]]+)\]")
_WORD = re.compile(r"(?<=[\s=])\d+(?!\S)|(?<!\S)--[a-z][a-z-]+|^\d+$", re.MULTILINE)
"""The name of an option, or its number."""
_GONE = object()

_UNSURE = {"waiver", "init-container-ends"}
"""A finding that is not sure may be what is waived; a script that is not known may end."""

FAILING = [
    case
    for case in CASES
    if case.kind == "fail" and case.rule not in _UNSURE
    if case.none is None and "apiVersion" in case.input()
]

_WORKERS = "a template of workers is there for some, even if their number is not known"
_PODS = "a pod that never starts is wrong, even if the number of such pods is not known"
_NODES = "more pods than Nodes are wrong, whatever Nodes a selector takes"
EXCEPTIONS = {
    (
        "name-fits",
        "spec.replicatedJobs[0].template.spec.completionMode",
    ): "the address of another object's pod is wrong, whether the pods have numbers or not",
    ("kai-queue-limit", "chat.spec.replicas"): _PODS,
    ("pod-fits-node", "chat.spec.replicas"): _PODS,
    ("pods-apart-fit", "gpu-1.metadata.labels"): _NODES,
    ("pods-apart-fit", "chat.spec.template.spec.nodeSelector"): _NODES,
    ("host-ip-per-pod", "spec.template.roles[0].workerReplicas"): _WORKERS,
    ("image-pinned", "spec.template.roles[0].workerReplicas"): _WORKERS,
    ("headless-copies", "spec.leaderWorkerTemplate.size"): _WORKERS,
    ("leader-worker-same-gpus", "spec.template.roles[0].workerReplicas"): _WORKERS,
    ("leader-worker-same-parallelism", "spec.template.roles[0].workerReplicas"): _WORKERS,
    ("ray-script-in-image", "spec.template.roles[0].workerReplicas"): _WORKERS,
    ("nodes-whole", "spec.leaderWorkerTemplate.size"): _WORKERS,
    (
        "leader-worker-same-parallelism",
        "spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0].args",
    ): "an option that the command states counts, although args may state it again",
    (
        "kserve-runtime-supports-model",
        "own.metadata.namespace",
    ): "a runtime whose namespace is not known is taken for the one that is named",
    (
        "master-address",
        "spec.template.spec.containers[0].env",
    ): "a variable that replaces the option is not expected in env that is not known",
    (
        "headless-workers",
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].command",
    ): "a rank behind the first one needs its address, whatever the workers run",
}
"""Fields of cases that may be an error if their value is not known, each with the reason."""

STATING = [
    (case, field, path)
    for case in CASES
    if case.none is None and case.says is None and "apiVersion" in documents(case.base)[0]
    for field in ("before", "set")
    for path, value in (getattr(case, field) or {}).items()
    if value is not REMOVED and path.rpartition(".")[2] not in {"", "apiVersion", "kind"}
    if len(documents(case.base)) == 1 or "." in path
]
"""The fields that cases state for a rule which reports nothing: it reads them."""


@for_each("case,field,path", STATING, ids=lambda row: f"{row[0].rule}-{row[0].kind}-{row[2]}")
def test_an_unknown_value_of_a_field_that_a_rule_reads_is_no_error(
    case: Case, field: str, path: str
) -> None:
    if (case.rule, path) in EXCEPTIONS:
        return
    below, stated = (f"{path}.", f"{path}["), getattr(case, field)
    made = {at: LATE if at == path else v for at, v in stated.items() if not at.startswith(below)}
    hidden = replace(case, before=made) if field == "before" else replace(case, set=made)
    new = [finding for finding in hidden.findings() if _is_error(finding)]
    known = {finding.rule for finding in case.findings()} if new else set()
    assert not [str(finding) for finding in new if finding.rule not in known]


@for_each("case", FAILING, ids=lambda case: f"{case.rule}-{case.number}")
def test_an_unknown_leaf_hides_no_finding_that_does_not_depend_on_it(case: Case) -> None:
    tree = case.input()
    stated = {str(f): f for f in _own(case, case.findings())}
    leaves = list(_leaves(tree))
    drawn = random.Random(f"{case.rule}-{case.number}")
    for leaf in drawn.sample(leaves, min(_EACH, len(leaves))):
        late = case.judge(_with(tree, leaf, LATE))
        assert not [str(f) for f in late if f.rule == RULE_FAULT], leaf
        said = set(map(str, late))
        lost = [f for text, f in stated.items() if text not in said and not _open_at(f, late)]
        for other in _others(tree, leaf):
            stays = (
                {str(f) for f in _own(case, case.judge(_with(tree, leaf, other)))}
                if lost
                else set()
            )
            lost = [f for f in lost if str(f) in stays]
        assert not lost, (leaf, lost)


@for_each("case", FAILING, ids=lambda case: f"{case.rule}-{case.number}")
def test_no_rule_fails_for_one_word_of_a_command_that_is_not_known(case: Case) -> None:
    tree = case.input()
    words = [
        (leaf, word.span(), changed)
        for leaf in _leaves(tree)
        if isinstance(text := _at(tree, leaf), str)
        for word in _WORD.finditer(text)
        for changed in (f"{word[0][:4]}#{word[0][4:]}" if word[0][0] == "-" else "$(A_SIZE)",)
    ]
    drawn = random.Random(f"{case.rule}-{case.number}")
    for leaf, (start, end), changed in drawn.sample(words, min(_EACH, len(words))):
        text = str(_at(tree, leaf))
        late = case.judge(_with(tree, leaf, text[:start] + changed + text[end:]))
        assert not [str(f) for f in late if f.rule == RULE_FAULT], (leaf, changed)


def _is_error(finding: Finding) -> bool:
    return finding.level is Level.MANDATORY or finding.rule == RULE_FAULT


def _own(case: Case, found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.rule == case.rule and f.level is not Level.UNKNOWN]


def _open_at(finding: Finding, late: list[Finding]) -> bool:
    """Return whether something was not checked that is in no other item than the finding."""
    mine = _items(finding.path)
    paths = (_items(f.path).items() for f in late if f.level is Level.UNKNOWN)
    return any(all(mine.get(place, item) == item for place, item in path) for path in paths)


def _items(path: str) -> dict[str, str]:
    """List the lists that a path goes through, with the item that it takes of each."""
    return {path[: found.start(2)]: found[2] for found in _ITEM.finditer(path)}


def _leaves(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in inside:
        if isinstance(value, dict | list):
            yield from _leaves(value, (*at, key))
        elif key not in {"apiVersion", "kind"}:
            yield (*at, key)


def _at(tree: Any, leaf: tuple[Any, ...]) -> Any:
    for key in leaf:
        tree = tree[key]
    return tree


def _with(tree: Any, leaf: tuple[Any, ...], value: object) -> Any:
    made = copy.deepcopy(tree)
    holder = made
    for key in leaf[:-1]:
        holder = holder[key]
    if value is _GONE:
        del holder[leaf[-1]]
    else:
        holder[leaf[-1]] = value
    return made


def _others(tree: Any, leaf: tuple[Any, ...]) -> tuple[object, ...]:
    """Return what else the leaf may be: a finding that stays for each does not depend on it."""
    value = _at(tree, leaf)
    changed = (
        not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else None
    )
    return _GONE, "other" if changed is None else changed
