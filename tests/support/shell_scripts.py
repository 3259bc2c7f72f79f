"""Launch scripts that are drawn at random, of what people write and of what misleads a reader."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.shell_forms import FORMS, PLAIN, TEXTS

_HOLE = re.compile(r"<(quoted |file |script )?([a-z]+)>")
_CHOICE = re.compile("«([^»]*)»")
_DEEPEST = 4
_DEEPEST_STATEMENT = 3


@dataclass(frozen=True)
class Drawn:
    """A script, with what it is run with."""

    shell: str
    """bash, or sh."""
    text: str
    words: tuple[str, ...]
    """What stands behind it, `$0` first."""
    files: dict[str, str]
    """Mounted files by name."""
    env: dict[str, str]
    hidden: str
    late: str
    fails: bool
    """Whether the program `check` fails."""
    known: bool
    """Whether nothing in it is hidden, so that all of it can be read."""


@dataclass
class Writer:
    """Draws one script."""

    draw: random.Random
    bash: bool
    """Whether it has what only bash knows."""
    folder: str
    """Where the mounted files lie."""
    known: bool
    """Whether it leaves out what nobody can know, and starts one engine at its end."""
    files: dict[str, str] = field(default_factory=dict)
    words: int = 0
    statements: int = 0

    def forms(self, name: str) -> Sequence[str]:
        """Return the forms of a name."""
        names = [name, f"{name} bash"] if self.bash else [name]
        names += [] if self.known else [f"{one} hidden" for one in names]
        return [form for one in names for form in FORMS.get(one, ())]

    def write(self, name: str) -> str:
        """Draw what stands for a name."""
        if name == "body":
            return self.body()
        if name in {"literal", "statement"}:
            return self.literal() if name == "literal" else self.statement()
        if name == "folder":
            return self.folder
        self.words += name == "word"
        deep = name == "word" and self.words > _DEEPEST
        made = self.literal() if deep else self.fill(self.draw.choice(self.forms(name)))
        self.words -= name == "word"
        return made

    def fill(self, form: str) -> str:
        """Fill a form."""
        chosen = _CHOICE.sub(self._choose, form)
        return _HOLE.sub(self._hole, chosen)

    def _choose(self, match: re.Match[str]) -> str:
        choices: list[str] = match[1].split("¦")
        return self.draw.choice(choices)

    def _hole(self, match: re.Match[str]) -> str:
        made, how = self.write(match[2]), (match[1] or "").strip()
        if how == "quoted":
            return "'" + made.replace("'", "'\\''") + "'"
        if not how:
            return made
        name = f"f{len(self.files)}.sh"
        self.files[name] = f"#!/bin/bash\n{made}" if how == "script" else made
        return name if how == "script" else f"{self.folder}/{name}"

    def literal(self) -> str:
        """Draw a string, quoted so that it stands for itself."""
        text = self.draw.choice(TEXTS)
        quoted = "'" + text.replace("'", "'\\''") + "'"
        double = '"' + re.sub(r'([\\"$])', r"\\\1", text) + '"'
        forms = [quoted, double, self.draw.choice(PLAIN)]
        if self.bash:
            forms.append("$'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
        return self.draw.choice(forms)

    def statement(self) -> str:
        """Draw one statement, over some lines perhaps."""
        self.statements += 1
        name = self.draw.choice(("simple", "simple", "compound"))
        made = self.write("simple" if self.statements > _DEEPEST_STATEMENT else name)
        self.statements -= 1
        return made

    def body(self, most: int = 2) -> str:
        """Draw some statements."""
        lines = [self.statement() for _ in range(self.draw.randrange(1, most + 1))]
        return "".join(line + self.separator(line) for line in lines)

    def separator(self, line: str) -> str:
        """Draw what may stand behind a statement."""
        if line.endswith(("END", "\n")):
            return "\n"
        return " " if line.endswith("&") else self.draw.choice(("\n", "\n", "; "))

    def script(self) -> str:
        """Draw a whole script; what is started last is started on most paths."""
        lines = ["ARGS=(1 'x y') L=()"] if self.known and self.bash else []
        lines.append(self.body(5))
        if self.known or self.draw.randrange(8):
            lines.append(self.write("engine"))
        return "\n".join(lines) + "\n"


def draw_script(seed: str, folder: str) -> Drawn:
    """Draw a script and what it is run with."""
    draw = random.Random(seed)
    bash, known = draw.randrange(4) > 0, draw.randrange(2) == 0
    mixed = not known and draw.randrange(6) == 0
    writer = Writer(draw, bash or mixed, folder, known)
    text = writer.script()
    if known:
        env = {"TP": draw.choice(("1", "4", "8")), "PP": draw.choice(("2", "3"))}
        env |= {"A": draw.choice(("6", "8")), "B": draw.choice(("", "a/b"))}
    else:
        env = {"TP": draw.choice(("1", "8", "x y")), "PP": draw.choice(("2", "", "-a b"))}
    return Drawn(
        shell="bash" if bash else "sh",
        text=text,
        words=("zero", *draw.choices(("p", "q r", "", "*", "3"), k=draw.randrange(4))),
        files=writer.files,
        env=env,
        hidden=draw.choice(("", "1", "x y", "-tp 2", "*", "a")),
        late=draw.choice(("0", "1")),
        fails=draw.randrange(3) == 0,
        known=known,
    )
