"""Works out how Pulumi enforces each rule's findings with a config of the policy pack.

Source: Pulumi v3.259.0, pkg/resource/analyzer/config.go (parsePolicyPackConfig, applyConfig) and
pkg/engine/update.go; pulumi-policy 1.21, policy.py (Analyze, AnalyzeStack).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import chain
from typing import Any

from kthena_components.checker.levels import DEFAULT, SettingError, Settings, parse_settings
from kthena_components.core.findings import RULE_FAULT
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.core.schema.versions import VERSIONS, Release, read_release
from kthena_components.core.values.dataclass import dataclass

ENFORCED: Mapping[str, str] = {
    "serving-rules": "mandatory",
    "serving-advice": "advisory",
    "serving-groups": "mandatory",
    "serving-groups-advice": "advisory",
}
"""The policies, and the level at which Pulumi enforces each of them if no config states another."""
LED_BY = {"serving-advice": "serving-rules", "serving-groups-advice": "serving-groups"}
"""Advisory policies and their mandatory counterparts, whose config applies to both."""
TOGETHER = frozenset({"serving-groups", "serving-groups-advice"})
"""Policies that see all objects of a stack."""
COMMAND = "check --level"
"""The command line reads the same files. It ignores the levels of policies."""
RANKS: Mapping[str, int] = {"disabled": 0, "advisory": 1, "mandatory": 2}
_STATED = ("advisory", "mandatory", "remediate", "disabled")
"""Source: pulumi sdk/go/common/apitype/policy.go, EnforcementLevel.IsValid. The case counts."""
_LEVEL, _ALL, _ENVIRONMENTS = "enforcementLevel", "all", "environments"
_BUDGET_RULES: Mapping[str, tuple[str, ...]] = {
    "gpu-budget": ("mandatory",),
    "surge-needs-spare-gpus": ("mandatory", "advisory"),
}
"""The rules that need a budget, and the levels of their findings."""
_TYPE_RULE = "gpu-type-allowed"
_PLACEMENT_RULE = "placement-fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Two policies that share a config: one for mandatory findings, and one for all others."""

    title: str
    """The name of the first policy."""
    led: str
    """The name of the second policy. Empty for the command line."""
    refuses: str = "mandatory"
    """How mandatory findings end: mandatory, advisory or disabled."""
    advises: str = "advisory"
    """How all other findings end."""
    settings: Settings

    def outcome(self, rule: str, own: str, *, is_probable: bool = False) -> str:
        """Return how a rule's finding ends: mandatory, advisory or disabled.

        Args:
            own: The level of the finding before any config: mandatory, advisory or unknown.
            is_probable: Whether no environment makes the finding mandatory (Finding.most).
        """
        weights = self.settings.levels.weights
        others = None if rule == RULE_FAULT else weights.get(DEFAULT)
        stated = weights.get(rule, others)
        if not self._runs(rule) or stated == "disabled":
            return "disabled"
        # What is unknown stays so, whatever level is stated.
        level = own if stated is None or own not in RANKS else stated
        if is_probable and not self.settings.levels.own & {rule, DEFAULT}:
            level = own
        return self.refuses if level == "mandatory" else self.advises

    def _runs(self, rule: str) -> bool:
        if rule in PRODUCTION_NAMES:
            return rule in self.settings.levels.asked
        return self.has_limit(rule)

    def has_limit(self, rule: str) -> bool:
        """Return whether a rule has the limit that it needs. Most rules need none."""
        if rule in _BUDGET_RULES:
            return self.settings.gpu_budget is not None
        return rule != _TYPE_RULE or bool(self.settings.gpu_types)

    def lowered(
        self, after: "Reader", rules: Mapping[str, Iterable[str]]
    ) -> dict[str, tuple[str, str]]:
        """Return the rules that another config enforces less strictly, with both outcomes.

        A limit that is removed is not a lower level.

        Args:
            after: The same policies with another config.
            rules: The levels that the findings of each rule may have before any config.
        """
        found: dict[str, tuple[str, str]] = {}
        for rule, levels in rules.items():
            for own, is_probable in _findings(levels):
                had = self.outcome(rule, own, is_probable=is_probable)
                has = after.outcome(rule, own, is_probable=is_probable)
                if RANKS[has] < RANKS[had] and after.has_limit(rule):
                    found.setdefault(rule, (had, has))
        return found

    def in_force(self) -> "Reader":
        """Return the same config as if Pulumi enforced both policies by default."""
        return replace(self, refuses="mandatory", advises="advisory")

    @property
    def budget(self) -> int | None:
        """The accelerators beyond which something is reported; None if nothing ever is."""
        enabled = (
            self.outcome(rule, own) != "disabled"
            for rule, levels in _BUDGET_RULES.items()
            for own in levels
        )
        return self.settings.gpu_budget if any(enabled) else None

    @property
    def types(self) -> tuple[frozenset[str], ...]:
        """The resources and the products that may be requested without a report. Empty: all."""
        silent = self.outcome(_TYPE_RULE, "mandatory") == "disabled"
        return (frozenset(), frozenset()) if silent else self.listed

    @property
    def listed(self) -> tuple[frozenset[str], ...]:
        """The resources and the products in gpuTypes. They are compared separately."""
        stated = frozenset(self.settings.gpu_types)
        resources = frozenset(name for name in stated if "/" in name)
        return resources, stated - resources

    @property
    def inventory(self) -> str:
        """The inventory into which pods must fit. Empty: none, or nothing is reported of it."""
        outcome = (self.outcome(_PLACEMENT_RULE, own) for own in ("mandatory", "advisory"))
        return self.settings.inventory if any(end != "disabled" for end in outcome) else ""

    @property
    def releases(self) -> dict[str, Release]:
        """The release of each system by which its objects are checked."""
        stated = self.settings.versions
        return {name: read_release(stated.get(name, known[-1])) for name, known in VERSIONS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PackConfig:
    """A config of the policy pack, with the defaults filled in."""

    enforced: Mapping[str, str]
    """How Pulumi enforces each policy: mandatory, advisory or disabled."""
    readers: tuple[Reader, ...]
    """The pairs of policies, and the command line if it can use the config."""
    others: Mapping[str, tuple[str | None, Mapping[str, Any]]] = field(default_factory=dict)
    """Policies of other packs: the level in the config, None without one, and the settings."""
    every: str | None = None
    """The level of `all`."""


def _findings(levels: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield the levels that findings may have, and whether no environment raises them."""
    for own in chain(levels, ("unknown",)):
        yield own, False
        if own == "advisory":
            yield own, True


def read_pack(config: Mapping[str, Any]) -> PackConfig:
    """Resolve a config as Pulumi and the policies do. An empty one stands for a missing file.

    Raises:
        SettingError: Pulumi or a policy would not use it, or this cannot tell how.
    """
    if config.get(_ENVIRONMENTS, []) != []:
        message = "takes settings from environments of Pulumi ESC, which cannot be compared"
        raise SettingError(f"{_ENVIRONMENTS} {message}; write the settings themselves")
    stated = {
        str(name): _level_and_settings(str(name), value)
        for name, value in config.items()
        if name != _ENVIRONMENTS
    }
    every, more = stated.pop(_ALL, (None, {}))
    if more:
        message = f"has the setting '{next(iter(more))}', but it sets only the level of policies"
        raise SettingError(f"{_ALL} {message}; write the setting for each policy")
    enforced = {name: stated.get(name, (None,))[0] or every or ENFORCED[name] for name in ENFORCED}
    settings = {name: _settings(name, stated.get(name, (None, {}))[1]) for name in ENFORCED}
    pairs = [_reader(leader, name, enforced, settings) for name, leader in LED_BY.items()]
    command = [_command(settings)] if isinstance(config.get("serving-rules"), Mapping) else []
    return PackConfig(
        enforced=enforced,
        readers=(*pairs, *command),
        others={name: part for name, part in stated.items() if name not in ENFORCED},
        every=every,
    )


def _level_and_settings(policy: str, value: object) -> tuple[str | None, Mapping[str, Any]]:
    """Return the level that the config gives to a policy, and its settings."""
    level, settings = value, {}
    if isinstance(value, Mapping):
        settings = {key: part for key, part in value.items() if key != _LEVEL}
        if _LEVEL not in value:
            return None, settings
        level = value[_LEVEL]
    if not isinstance(level, str) or level not in _STATED:
        at = f"{policy}.{_LEVEL}" if isinstance(value, Mapping) else policy
        raise SettingError(f"{at} is {str(level)[:60]!r}; known: {', '.join(_STATED)}")
    # No policy of the pack remediates, and the SDK then treats the level as mandatory.
    return "mandatory" if level == "remediate" else level, settings


def _settings(policy: str, stated: Mapping[str, Any]) -> Settings:
    try:
        return parse_settings(stated, together=policy in TOGETHER)
    except SettingError as error:
        raise SettingError(f"{policy}: {error}") from error


def _reader(
    leader: str, led: str, enforced: Mapping[str, str], settings: Mapping[str, Settings]
) -> Reader:
    """Describe how a pair of policies enforces its findings: one refuses, the other advises."""
    # A policy that is disabled does not run, so the advisory one uses its own config.
    used = led if enforced[leader] == "disabled" else leader
    return Reader(
        title=leader, led=led, refuses=enforced[leader], advises=enforced[led],
        settings=settings[used],
    )  # fmt: skip


def _command(settings: Mapping[str, Settings]) -> Reader:
    limits = settings["serving-groups"]
    used = replace(
        settings["serving-rules"], gpu_budget=limits.gpu_budget, gpu_types=limits.gpu_types
    )
    return Reader(title=COMMAND, led="", settings=used)
