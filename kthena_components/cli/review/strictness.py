"""Compares how strictly a branch and its base check each stack."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache

from kthena_components.checker.catalogue import all_rules
from kthena_components.checker.enforcement import PackConfig, read_pack
from kthena_components.checker.levels import ENVIRONMENTS, SettingError
from kthena_components.checker.weakened_levels_limits_waivers import LEVEL_RULES, LevelsChange
from kthena_components.cli.levels import read_policies
from kthena_components.cli.policy_pack import FOLDER, LEVELS, levels_of
from kthena_components.core.findings import Finding
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable

_SUFFIX = ".json"
_OWN = regex(r"mandatory|advisory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The files of a project that decide how its stacks are checked, in the base or the branch."""

    levels: Mapping[str, str | Unreadable] = field(default_factory=dict)
    """The texts of all files in policies/levels, by name: prod.json. Links are unreadable."""
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
