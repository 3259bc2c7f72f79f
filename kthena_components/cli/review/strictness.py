"""What a branch may not weaken by itself: the waivers of its base, and how strictly it checks.

A waiver is for one object of one stack: its kind, namespace and name. A stack file of the base
tells exactly which object that is. The code of a program does not. There, the state tells: the
object, or the component that it belongs to, was deployed with this waiver, and the code of the base
still contains it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from kthena_components.checker.catalogue import all_rules
from kthena_components.checker.enforcement import PackConfig, read_pack
from kthena_components.checker.levels import ENVIRONMENTS, SettingError
from kthena_components.checker.waivers import (
    FIELD,
    Subject,
    annotated,
    listed,
    read_waiver,
    waived_subjects,
)
from kthena_components.checker.weakened_levels_limits_waivers import LEVEL_RULES, LevelsChange
from kthena_components.cli.policy_pack import FOLDER, LEVELS, levels_of
from kthena_components.cli.review.preview import Preview, PreviewFinding, Step, Weight
from kthena_components.cli.review.stack_file_settings import stack_values
from kthena_components.cli.settings import read_policies
from kthena_components.core.findings import Finding, Waiver
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.project import PROGRAM_SUFFIXES, Project, ProjectError, read_project
from kthena_components.reading.settings import read_below

_CLAUSE = "Waived until "
_WAIVED = regex(r"Waived until (\d{4}-\d\d-\d\d): (.*)\. \[([a-z0-9-]+)\]$")
_SUFFIXES = PROGRAM_SUFFIXES | {".yaml", ".yml", ".json", ".tf", ".toml"}
_MOST = 2**20
_BETWEEN = r"[\s\"'\\+]+"
"""Pattern between two words of a waiver: a long string may be written as several strings."""
_QUOTE = regex(r"\\?([\"'])")
_NO_STATE = (
    "Whether the base waives it for this object was not checked, because the preview has no state"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseStack:
    """A stack in the base of a branch."""

    values: Mapping[str, Any]
    """Its config, with the defaults of the project."""
    text: str
    """The text of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    until: date
    reason: str
    rule: str


class BaseWaivers:
    """The waivers in the files of a base."""

    def __init__(
        self,
        *,
        code: Callable[[], Iterable[str]],
        stacks: Callable[[str], BaseStack | None],
        today: date,
    ) -> None:
        """Store where the waivers come from. Nothing is read before a finding is waived.

        Args:
            code: Returns the contents of the base's code and manifests, without its stack files.
            stacks: Returns a stack of the base by its name. None if it cannot be read, or if the
                base has no such stack: then all its waivers are new.
            today: The day on which waivers are checked, in UTC.
        """
        self._code, self._stacks, self._today = code, stacks, today

    def apply(self, said: Iterable[PreviewFinding], preview: Preview) -> Iterator[PreviewFinding]:
        """Make waived findings mandatory again if the base does not waive them for this object.

        A preview without a state does not tell which objects existed before. A finding is then not
        checked if the base contains the text of its waiver.
        """
        stack: BaseStack | None = None
        days: Mapping[tuple[Subject, str], date] | None = None
        for item in said:
            if item.weight is not Weight.WAIVED:
                yield item
                continue
            if days is None:
                stack = self._stacks(preview.stack)
                days = {} if stack is None else waived_subjects(stack.values, self._today)
            yield self._checked(item, preview, stack, days)

    def _checked(
        self,
        said: PreviewFinding,
        preview: Preview,
        stack: BaseStack | None,
        days: Mapping[tuple[Subject, str], date],
    ) -> PreviewFinding:
        """Keep a finding waived only if the base's code or state shows the same waiver."""
        clause = _clause(said.text)
        if clause is None or stack is None:
            return replace(said, weight=Weight.MANDATORY)
        chain = list(_chain(said.urn, preview.steps))
        stated = (days.get((_subject(step, step.new), clause.rule)) for step in chain)
        if any(day is not None and day >= clause.until for day in stated):
            return said
        if not self._is_in_code(clause, stack):
            return replace(said, weight=Weight.MANDATORY)
        if any(self._was_deployed(clause, step) for step in chain):
            return said
        if chain and any(step.op != "create" for step in preview.steps.values()):
            return replace(said, weight=Weight.MANDATORY)
        text = f"{said.text.removesuffix(f' [{clause.rule}]')} {_NO_STATE}. [{clause.rule}]"
        return replace(said, weight=Weight.UNKNOWN, text=text)

    def _was_deployed(self, clause: _Clause, step: Step) -> bool:
        """Return whether an object of this identity was deployed with the waiver."""
        if _subject(step, step.old) != _subject(step, step.new):
            return False
        for entry in (*annotated(step.old), *listed(step.old.get(FIELD))):
            read = read_waiver(entry, self._today) if entry.rule == clause.rule else None
            if isinstance(read, Waiver) and read.until >= clause.until:
                return True
        return False

    def _is_in_code(self, clause: _Clause, stack: BaseStack) -> bool:
        """Return whether a file of the base contains the rule's name and the full waiver text."""
        words = (_escaped(word) for word in f"{clause.until} {clause.reason}".split())
        whole = re.compile(rf"{_BETWEEN.join(words)}\.?\s*(?:[\"',}}\]#]|$)", re.MULTILINE)
        texts = (stack.text, *self._texts)
        return any(clause.rule in text and whole.search(text) is not None for text in texts)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple(self._code())


def _clause(text: str) -> _Clause | None:
    """Read the waiver in the text of a finding: the last one, because it may quote others."""
    at = text.rfind(_CLAUSE)
    found = _WAIVED.match(text, at) if at >= 0 else None
    try:
        until = date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None
    return _Clause(until=until, reason=found[2], rule=found[3]) if found and until else None


def _escaped(word: str) -> str:
    """Match a word however its quotes are escaped: with a backslash, or twice."""
    return _QUOTE.sub(r"[\\\\'\"]?\1", re.escape(word))


def _chain(urn: str, steps: Mapping[str, Step]) -> Iterator[Step]:
    """Yield the step of an object, and the steps of its parents."""
    seen: set[str] = set()
    while urn in steps and urn not in seen:
        seen.add(urn)
        yield steps[urn]
        urn = steps[urn].parent


def _subject(step: Step, inputs: Mapping[str, Any]) -> Subject:
    """Return the kind, namespace and name of an object, or the name of a component."""
    if step.type.startswith("kthena:"):
        kind, at = "", inputs
    else:
        kind, at = step.kind, mapping(inputs.get("metadata"))
    return Subject(kind, str(at.get("namespace") or "default"), str(at.get("name") or ""))


def is_code(path: str) -> bool:
    """Return whether a file of a project may state waivers, by its path in the project."""
    return Path(path).suffix in _SUFFIXES


def read_base_waivers(base: Path, today: date) -> BaseWaivers:
    """Read the waivers of a base from the folder with its files."""
    try:
        project = read_project(base)
    except ProjectError:  # then no stack of the base is known, and all waivers are new
        return BaseWaivers(code=tuple, stacks=lambda _: None, today=today)
    return BaseWaivers(
        code=lambda: _code(base, project),
        stacks=lambda stack: _stack(base, project, stack),
        today=today,
    )


def _code(base: Path, project: Project) -> Iterator[str]:
    stack_files = re.compile(re.escape(project.stack_file("\0")).replace("\0", "[^/]*"))
    for path in sorted(base.rglob("*")):
        at = path.relative_to(base).as_posix()
        if not is_code(at) or stack_files.fullmatch(at):
            continue
        if path.is_file() and path.stat().st_size <= _MOST:
            yield path.read_text(errors="replace")


def _stack(base: Path, project: Project, stack: str) -> BaseStack | None:
    """Read a stack's settings at the base; None if it has no readable file there."""
    file = project.stack_file(stack)
    text = read_below(base / file, base)
    if isinstance(text, Unreadable):
        return None
    try:
        values = stack_values(text, file, project)
    except ProjectError:
        return None
    return BaseStack(values={**values.others, **values.own}, text=text)


_SUFFIX = ".json"
_OWN = regex(r"mandatory|advisory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The files of a project that decide how its stacks are checked, in the base or the branch."""

    levels: Mapping[str, str | Unreadable] = field(default_factory=dict)
    """The contents of all files in policies/levels, by name: prod.json. Links are unreadable."""
    is_own: bool = False
    """Whether the project has a policies/PulumiPolicy.yaml."""
    has_levels: bool = False
    """Whether the project has something with the name policies/levels, even a file."""

    def config(self, stack: str) -> str | Unreadable | None:
        """Return the config that a preview of a stack uses. None: the pack's defaults apply."""
        stated = self.levels.get(f"{stack}{_SUFFIX}")
        # The pack of the wheel brings its levels along if the project has neither.
        has_any = bool(self.levels) or self.has_levels
        brought = stack in ENVIRONMENTS and not has_any and not self.is_own
        return levels_of(stack) if stated is None and brought else stated


def level_findings(before: Pack, after: Pack, stacks: Iterable[str] = ()) -> Iterator[Finding]:
    """Compare the levels of all stacks that have a file of levels in the base or in the branch.

    A new stack is compared with the defaults of the pack, by which the base checks it.

    Args:
        before: The files of the base.
        after: The files of the branch.
        stacks: Further stacks, which have no such file.
    """
    files = {*before.levels, *after.levels}
    named = {file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX)}
    for stack in sorted({*named, *stacks, *ENVIRONMENTS}):
        old, new = before.config(stack), after.config(stack)
        if old != new:
            change = LevelsChange(
                file=f"{FOLDER}/{LEVELS}/{stack}{_SUFFIX}",
                before=_read(old, stack),
                after=_read(new, stack),
                is_deleted=new is None,
                rules=_levels(),
            )
            for rule in LEVEL_RULES:
                yield from rule(change)


def _read(text: str | Unreadable | None, stack: str) -> PackConfig | str:
    """Read the pack's config of a stack, or return why it is not readable."""
    if text is None:
        return read_pack({})
    if isinstance(text, Unreadable):
        return text.because
    try:
        return read_policies(text, f"{stack}{_SUFFIX}")
    except SettingError as error:
        return str(error)


@cache
def _levels() -> Mapping[str, tuple[str, ...]]:
    """Return the levels that the findings of each rule may have. The documentation states both."""
    return {
        rule.name: tuple(dict.fromkeys(_OWN.findall(rule.weighs))) or (rule.level.value,)
        for rule in all_rules()
    }
