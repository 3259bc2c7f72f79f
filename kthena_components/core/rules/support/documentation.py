"""Reads a rule's documentation from its docstring.

The docstring of a rule starts with one sentence that states the rule. Paragraphs may follow. Then
sections, each of which ends at the next one or at a blank line:

- `Pass:` and `Fail:` are short examples with numbers, any number of them;
- `Level:` is the level of its findings, mandatory if left out;
- `Source:` names the source of the rule;
- `Code:` is the path of its code, for findings that no function of the catalogue makes.
"""

import re

from kthena_components.core.findings import Level
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_SECTION = regex(r"(Pass|Fail|Level|Source|Code): *(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A passing or failing example."""

    passes: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDoc:
    """The documentation of one rule."""

    name: str
    subject: str
    """What the rule checks: the title of a group of rules."""
    summary: str
    """The rule in one sentence."""
    body: str
    """Further paragraphs, with blank lines between them."""
    level: Level
    weighs: str
    """The level as the docstring states it: some rules have two."""
    sources: tuple[str, ...]
    examples: tuple[Example, ...]
    module: str = ""
    """The module of the rule's function. Empty for findings that no function makes."""
    file: str = ""
    """Path of the rule's code in the repository."""

    @property
    def cases(self) -> str:
        """Path of the rule's cases in the repository: the folder of tests that mirrors its own."""
        package, _, folder = self.module.rpartition(".")[0].partition(".")
        if not package:
            return ""
        mirror = folder if folder == "core.rules" else folder.removesuffix(".rules")
        return f"tests/{mirror.replace('.', '/')}/cases/{self.name}.yaml"


def read_docstring(text: str, *, name: str, subject: str, module: str = "") -> RuleDoc:
    """Read a rule's documentation from its docstring."""
    summary, *lines = text.splitlines() or [""]
    told: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    inside = False
    for line in lines:
        begun = _SECTION.fullmatch(line)
        if begun:
            sections.append((begun[1], [begun[2]]))
        elif line and inside:
            sections[-1][1].append(line)
        else:
            told.append(line)
        inside = bool(begun) or (inside and bool(line))
    stated = [(kind, " ".join(" ".join(parts).split())) for kind, parts in sections]
    weighs = next((at for kind, at in stated if kind == "Level"), Level.MANDATORY.value)
    code = next((at for kind, at in stated if kind == "Code"), f"{module.replace('.', '/')}.py")
    return RuleDoc(
        name=name,
        subject=subject,
        summary=summary,
        body=re.sub(r"\n{3,}", "\n\n", "\n".join(told)).strip(),
        level=_level(weighs),
        weighs=weighs.rstrip("."),
        sources=tuple(at for kind, at in stated if kind == "Source"),
        examples=tuple(
            Example(passes=kind == "Pass", text=at)
            for kind, at in stated
            if kind in {"Pass", "Fail"}
        ),
        module=module,
        file=code.rstrip("."),
    )


def _level(text: str) -> Level:
    """Read the level from a line that may contain more: `advisory, where no gang is asked for`."""
    word = re.split(r"[^a-z]", text, maxsplit=1)[0]
    return Level.UNKNOWN if word == "not" else Level(word)
