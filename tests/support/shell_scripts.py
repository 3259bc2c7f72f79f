"""Launch scripts that are drawn at random, of what people write and of what misleads a reader."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

NAMES = ("A", "B", "TP", "PP")
"""Variables; TP and PP are in the container's env."""
HIDDEN = "U"
"""A variable of which only the real shell knows the value."""
LATE = "WORKER_INDEX"
"""A variable that each pod has its own value for."""
ARRAYS = ("ARGS", "L")
FUNCTIONS = ("f", "g", "start_it")
_TEXTS = (
    "1", "2", "4", "8", "16", "M", "--seed", "x y", "a  b", "", "it's", "a*b", "a/b/c.d", "k=v",
    "-x", "$A", "a,b,c", "{p,q}", "~", "#no", "a\\b",
)  # fmt: skip
_PLAIN = ("1", "2", "4", "8", "16", "M", "--seed", "-x", "a/b.c", "k=v", "a,b")


@dataclass
class Drawn:
    """A script, with what it is run with."""

    shell: str
    """bash, or sh."""
    text: str
    words: tuple[str, ...]
    """What stands behind it, `$0` first."""
    files: dict[str, str]
    """Mounted files by name: others may be in the same folder."""
    env: dict[str, str]
    hidden: str
    late: str
    fails: bool
    """Whether the program `check` fails."""
    known: bool
    """Whether nothing in it is hidden, so that all of it can be read."""


@dataclass
class Writer:
    """Draws one script. Only bash gets what only bash knows, mostly."""

    draw: random.Random
    bash: bool
    folder: str
    """Where the mounted files lie."""
    known: bool
    """Whether it leaves out what nobody can know, and starts one engine at its end."""
    depth: int = 0
    files: dict[str, str] = field(default_factory=dict)

    def pick(self, *choices: str) -> str:
        """Draw one text."""
        return self.draw.choice(choices)

    def literal(self) -> str:
        """Draw a text, quoted so that it stands for itself."""
        text = self.draw.choice(_TEXTS)
        quoted = "'" + text.replace("'", "'\\''") + "'"
        double = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
        forms = [quoted, double, self.draw.choice(_PLAIN)]
        if self.bash:
            ansi = text.replace("\\", "\\\\").replace("'", "\\'")
            forms.append("$'" + ansi + "'")
        return self.draw.choice(forms)

    def name(self) -> str:
        """Draw a variable."""
        return self.draw.choice(NAMES)

    def word(self) -> str:
        """Draw a word of a command."""
        self.depth += 1
        forms = _WORDS + (_BASH_WORDS if self.bash else ()) + (() if self.known else _HIDDEN_WORDS)
        made = self.draw.choice(forms)(self) if self.depth < 4 else self.literal()
        self.depth -= 1
        return made

    def words(self, most: int = 4) -> str:
        """Draw some words."""
        return " ".join(self.word() for _ in range(self.draw.randrange(most + 1)))

    def engine(self) -> str:
        """Draw a command that starts an engine."""
        made = f"vllm serve {self.words(3)} -tp {self.word()} {self.words(3)}".rstrip()
        made = self.draw.choice((made, made, f"python3 -m vllm.entrypoints.openai.api_server -tp {self.word()}"))
        return self.draw.choice(_STARTS)(self, made)

    def condition(self) -> str:
        """Draw what is tested."""
        forms = _CONDITIONS + (_BASH_CONDITIONS if self.bash else ())
        forms += () if self.known else _HIDDEN_CONDITIONS
        return self.draw.choice(forms)(self)

    def statement(self) -> str:
        """Draw one statement, over some lines perhaps."""
        self.depth += 1
        forms = _SIMPLE * 2 + (_BASH_SIMPLE * 2 if self.bash else ())
        forms += () if self.known else _HIDDEN_SIMPLE
        if self.depth <= 3:
            forms += _COMPOUND + (_BASH_COMPOUND if self.bash else ())
        made = self.draw.choice(forms)(self)
        self.depth -= 1
        return made

    def body(self, most: int = 3) -> str:
        """Draw some statements."""
        lines = [self.statement() for _ in range(self.draw.randrange(1, most + 1))]
        return "".join(line + self.separator(line) for line in lines)

    def separator(self, line: str) -> str:
        """Draw what may stand behind a statement."""
        if line.endswith("END") or line.startswith("#"):
            return "\n"
        return " " if line.endswith("&") else self.pick("\n", "\n", "; ")

    def script(self) -> str:
        """Draw a whole script; what is started last is started on most paths."""
        lines = ["ARGS=(1 'x y') L=()"] if self.known and self.bash else []
        lines.append(self.body(5))
        if self.known or self.draw.randrange(8):
            lines.append(self.engine())
        return "\n".join(lines) + "\n"

    def file(self, text: str, *, shebang: str = "") -> str:
        """Mount a text, and give its path."""
        name = f"f{len(self.files)}.sh"
        self.files[name] = f"{shebang}{text}"
        return f"{self.folder}/{name}"


Form = Callable[[Writer], str]

_WORDS: tuple[Form, ...] = (
    Writer.literal,
    Writer.literal,
    Writer.literal,
    lambda w: f"${w.name()}",
    lambda w: f'"${w.name()}"',
    lambda w: f'"${{{w.name()}}}"',
    lambda w: f"${{{w.name()}:-{w.literal()}}}",
    lambda w: f'"${{{w.name()}:-{w.draw.choice(_PLAIN)}}}"',
    lambda w: f"${{{w.name()}{w.pick('-', '+', ':+')}{w.literal()}}}",
    lambda w: f'"{w.draw.choice(_PLAIN)}${w.name()}-x"',
    lambda w: f"$(({w.draw.randrange(9)} {w.pick('+', '*', '-', '<', '==', '&&')} {w.draw.randrange(1, 9)}))",
    lambda w: f"$(( ({w.draw.randrange(9)} + 3) {w.pick('/', '%', '*')} {w.draw.randrange(1, 5)} ))",
    lambda w: f"$(echo {w.word()})",
    lambda w: f'"$(echo {w.word()} {w.word()})"',
    lambda w: f"`echo {w.draw.choice(_PLAIN)}`",
    lambda w: f"$(printf '%s' {w.word()})",
    lambda w: f"${{#{w.name()}}}",
    lambda w: f"${{{w.name()}{w.pick('%', '%%', '#', '##')}{w.pick('*', 'a', '*/', '.*', '[0-9]', 'x*')}}}",
    lambda w: w.pick("$1", '"$1"', '"$@"', "$@", '"$*"', "$#", '"${2:-z}"', "$0", "$?"),
    lambda w: w.pick("$(basename /a/b.c)", '$(dirname "/a/b c/d")', "$(seq 2 3)"),
)
_HIDDEN_WORDS: tuple[Form, ...] = (
    lambda w: w.pick(f"${HIDDEN}", f'"${HIDDEN}"', f"x${HIDDEN}", f'"${{{HIDDEN}:-1}}"', f"${LATE}"),
    lambda w: w.pick("$(probe)", '"$(probe)"', "`probe`", "${!N}"),
)
_BASH_WORDS: tuple[Form, ...] = (
    lambda w: w.pick('"${ARGS[@]}"', "${ARGS[@]}", '"${ARGS[*]}"', '"${L[@]}"', "${#ARGS[@]}"),
    lambda w: w.pick('"${ARGS[@]}"', '"${ARGS[0]}"', "${ARGS[1]:-d}", '"${ARGS[@]:1}"', '"${L[@]/#/-}"'),
    lambda w: w.pick("{1,2}", "a{b,c}d", "{1..3}", "--x{1,2}=y", "{a", "{}", "{a}"),
    lambda w: f"${{{w.name()}{w.pick('//a/b', '/x/', '/#a/z', '^^', ',,', ':0:1', ':1', ': -1')}}}",
    lambda w: f'"${{{w.name()}{w.pick("//,/ ", "/a*/q", "^", "/%y/z")}}}"',
    lambda w: f"$(({w.pick('TP', 'PP', 'A')} {w.pick('*', '+', '**', '|', '<<')} 2))",
    lambda w: w.pick("$((${#TP}>2?1:3))", '"${ARGS[@]:-x}"', '"$(( 07 + 0x1F ))"'),
)


def _started(form: str) -> Callable[[Writer, str], str]:
    return lambda w, made: form.replace("@", made)


_STARTS: tuple[Callable[[Writer, str], str], ...] = (
    *[_started("@")] * 8,
    *map(_started, ("exec @", "command @", "nohup @", "env A=1 @", "A=9 @", "TP=3 PP=5 @", "@ &", "@ | cat")),
    *map(_started, ("(@)", "{ @; }", "@ > /dev/null 2>&1", "time @" , "timeout 9 @", "@ &\nwait", "! @")),
    lambda w, made: f"bash -c {_quoted(made)} x 7",
    lambda w, made: f"{w.name()}={w.draw.choice(_PLAIN)} bash -c {_quoted(made)}",
    lambda w, made: f"env {w.name()}={w.draw.choice(_PLAIN)} bash -c {_quoted(made)} y a b",
    lambda w, made: f"bash -s -- q r <<'END'\n{made}\nEND",
    lambda w, made: f"cat <<'END' | bash\n{made}\nEND",
    lambda w, made: f"cd {w.folder} && ./{w.file(made, shebang='#!/bin/bash' + chr(10)).rpartition('/')[2]} 5 6",
    lambda w, made: f"bash {w.file(made)} 3",
)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_CONDITIONS: tuple[Form, ...] = (
    lambda w: f'[ "${w.name()}" = {w.draw.choice(_PLAIN)} ]',
    lambda w: f'[ "${w.name()}" {w.pick("-gt", "-eq", "-le")} {w.draw.randrange(9)} ]',
    lambda w: f'[ {w.pick("-n", "-z")} "${w.name()}" ]',
    lambda w: f'[ {w.pick("! ", "")}"${w.name()}" != {w.literal()} ]',
    lambda w: f'test -n "${w.name()}" {w.pick("-a", "-o")} 1 = {w.draw.randrange(3)}',
    lambda w: w.pick("true", "false", ":", "[ $# -gt 1 ]", "! false"),
)
_HIDDEN_CONDITIONS: tuple[Form, ...] = (
    lambda w: w.pick("check", "! check", "check && check"),
    lambda w: w.pick(f'[ "${HIDDEN}" = 1 ]', f'[ -n "${HIDDEN}" ]', "[ -f /no/such ]"),
    lambda w: w.pick(f'[ "${LATE}" = 0 ]', f'[ "${LATE}" -gt 0 ]', f"[[ ! ( -z $A || ${HIDDEN} != 1 ) ]]"),
)
_BASH_CONDITIONS: tuple[Form, ...] = (
    lambda w: f"[[ ${w.name()} == {w.pick('*', '[0-9]', 'a*', '?', '8', chr(34) + 'M' + chr(34))} ]]",
    lambda w: f"[[ -n ${w.name()} {w.pick('&&', '||')} ${w.name()} -ge {w.draw.randrange(9)} ]]",
    lambda w: f"(( {w.pick('TP', 'PP', '3')} {w.pick('>', '==', '%')} {w.draw.randrange(1, 9)} ))",
    lambda w: f"[[ ${w.name()} =~ ^[0-9]+$ ]]",
    lambda w: f"[[ ! ( -z ${w.name()} || ${w.name()} != 1 ) ]]",
)


def _assigned(w: Writer) -> str:
    return f"{w.name()}={w.word()}"


_SIMPLE: tuple[Form, ...] = (
    _assigned,
    _assigned,
    lambda w: f"export {w.name()}={w.literal()} {w.name()}",
    lambda w: f"{_assigned(w)} {_assigned(w)}",
    lambda w: f"unset {w.name()}",
    lambda w: f"set -- {w.words()}",
    lambda w: w.pick("shift", "shift 2", "set -f", "set +f", "set -e", "set -u", "set -a", "set +a"),
    lambda w: f"echo {w.words()} vllm serve M -tp 4",
    lambda w: f"{w.condition()} {w.pick('&&', '||')} {_assigned(w)}",
    lambda w: f"eval {_quoted(_assigned(w))}",
    lambda w: f"eval \"{w.name()}=${w.name()}\"",
    lambda w: f"export $(echo {w.name()}={w.draw.choice(_PLAIN)})",
    lambda w: f": ${{{w.name()}:={w.literal()}}}",
    lambda w: f"IFS={w.pick(',', ':', chr(39) + ' ' + chr(39))} read -r A B <<END\n{w.pick('1,2', 'x:y:z', ' 4  8 ', 'q')}\nEND",
    lambda w: f"# don't {w.engine()}".partition("\n")[0],
    lambda w: w.pick(*FUNCTIONS) + f" {w.words(2)}",
    lambda w: f". {w.file(_assigned(w))}",
    lambda w: f"({_assigned(w)})",
    lambda w: f"{_assigned(w)} | cat",
    lambda w: w.pick("cd /tmp", "IFS=,", "unset IFS", "wait", "trap 'B=1' EXIT"),
)
_HIDDEN_SIMPLE: tuple[Form, ...] = (
    lambda w: f"check {w.pick('&&', '||')} {w.pick(_assigned(w), w.engine(), 'exit 7', 'true')}",
    lambda w: w.pick("trap 'A=9' TERM", "check", ". /no/such", "g2 || true", f"N={w.name()}"),
    Writer.engine,
    Writer.engine,
)
_BASH_SIMPLE: tuple[Form, ...] = (
    lambda w: f"{w.pick(*ARRAYS)}{w.pick('=', '+=')}({w.words()})",
    lambda w: f"{w.pick(*ARRAYS)}{w.pick('=', '+=')}({w.words()})",
    lambda w: f"ARGS[{w.pick('0', '1', '$A', '7')}]={w.word()}",
    lambda w: f"{w.name()}+={w.word()}",
    lambda w: f"printf -v {w.name()} {w.pick('%s', '%d', chr(39) + '<%s>' + chr(39), '%s-%s')} {w.words(2)}",
    lambda w: f"let {w.pick('A=TP+1', chr(34) + 'B = 3' + chr(34), 'A++', 'TP*=2')}",
    lambda w: f"(( {w.pick('A=PP*2', 'TP+=1', 'A++', 'B = TP > 2 ? 1 : 0')} ))",
    lambda w: f"declare {w.pick('', '-x ', '-r ')}{_assigned(w)}",
    lambda w: f"read -r A B <<< {w.word()}",
    lambda w: f"read -ra ARGS <<< {w.word()}",
    lambda w: f"source {w.file(_assigned(w))}",
)


def _if(w: Writer) -> str:
    rest = f"elif {w.condition()}; then\n{w.body(2)}\n" if w.draw.randrange(3) == 0 else ""
    rest += f"else\n{w.body(2)}\n" if w.draw.randrange(2) else ""
    return f"if {w.condition()}; then\n{w.body(2)}\n{rest}fi"


def _case(w: Writer) -> str:
    ends = (";;", ";;", ";&", ";;&") if w.bash else (";;",)
    items = [
        f"  {w.pick('a*', '[0-9]', '8|4', '*', chr(34) + '*' + chr(34), '?', 'M')}) {w.statement()}\n  {w.pick(*ends)}\n"
        for _ in range(w.draw.randrange(1, 4))
    ]
    return f"case {w.word()} in\n{''.join(items)}esac"


def _for(w: Writer) -> str:
    over = w.pick(w.word(), "1 2", '"$@"', "$(echo 4 8)", w.words())
    leave = w.pick("", "", "continue", "break", f"{w.condition()} && break")
    return f"for {w.name()} in {over}; do\n{w.body(2)}{leave}\ndone"


def _while(w: Writer) -> str:
    name, most = w.name(), w.draw.randrange(4)
    body = w.body(1)
    count = f"{name}=$(({name}+1))"
    return f"{name}=0\nI=0\nwhile [ $I -lt {most} ]; do\nI=$((I+1))\n{count}\n{body}done"


def _loop(w: Writer) -> str:
    return w.pick(
        f"while true; do\n{w.body(1)}break\ndone",
        "until true; do sleep 0; done",
        f"while {w.condition()}; do {_assigned(w)}; break; done",
    )


def _function(w: Writer) -> str:
    local = f"local {_assigned(w)}\n" if w.draw.randrange(2) else ""
    leave = w.pick("", "", "return\n", f"{w.condition()} && return\n", f"{w.condition()} || return 1\n")
    made = f"{local}{w.body(2)}{leave}{w.body(1)}"
    return f"{w.pick(*FUNCTIONS)}() {{\n{made}}}"


_COMPOUND: tuple[Form, ...] = (
    _if,
    _if,
    _case,
    _for,
    _while,
    _loop,
    _function,
    _function,
    lambda w: f"if false; then {w.engine()}\nfi",
    lambda w: f"(\n{w.body(2)})",
    lambda w: f"{{\n{w.body(2)}}}",
    lambda w: f"{{\n{w.body(1)}}} | cat",
    lambda w: f"{{\n{w.body(1)}}} &",
    lambda w: f"cat <<{w.pick('END', chr(39) + 'END' + chr(39))} > /dev/null\n{w.engine()} ${w.name()}\nEND".replace("END'\n", "END'\n"),
    lambda w: f"A=$(\n{w.body(1)})",
    lambda w: f"if {w.condition()}; then exec {w.pick('true', 'vllm serve M -tp 2')}; fi",
    lambda w: f"if {w.condition()}; then exit {w.pick('7', '0')}; fi",
)
_BASH_COMPOUND: tuple[Form, ...] = (
    lambda w: f"for ((I=0; I<{w.draw.randrange(3)}; I++)); do\n{w.body(1)}done",
    lambda w: f"function {w.pick(*FUNCTIONS)} {{\n{w.body(2)}}}",
    lambda w: f"while read -r A; do\n{w.body(1)}done <<< {w.word()}",
)


def draw_script(seed: str, folder: str) -> Drawn:
    """Draw a script and what it is run with."""
    draw = random.Random(seed)
    bash = draw.randrange(4) > 0
    known = draw.randrange(2) == 0
    mixed = not known and draw.randrange(6) == 0
    writer = Writer(draw, bash or mixed, folder, known)
    text = writer.script()
    env = {"TP": draw.choice(("1", "4", "8", "x y")), "PP": draw.choice(("2", "3", "", "-a b"))}
    if known:
        env = {"TP": draw.choice(("1", "4", "8")), "PP": draw.choice(("2", "3"))}
        env |= {"A": draw.choice(("6", "8")), "B": draw.choice(("", "a/b"))}
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
