"""Scripts as trees: plain words without the grammar, and what the grammar gets wrong."""

import re
import subprocess
import sys
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.engines import read_command
from kthena_components.core.engines.bash import tree
from kthena_components.core.engines.bash.syntax import LONGEST, parse, parse_plain
from kthena_components.core.engines.bash.tree import parse_all
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each
from tests.support.shell_runs import recorded

PLAIN = st.sampled_from(
    [
        *("vllm", "serve", "M", "-tp", "8", "--a=b", "ray", "start", "--head", "A=1", "a:b/c.d@e"),
        *("if", "then", "export", "time", "function", "in", "-", "--", "%1", "+x", ",", "=", "A="),
        *("\ue0020\ue003", "x\ue0001\ue001y", "8=", "a=b=c", "1", "eval", "exec", "case"),
    ]
)
MARKS = st.sampled_from([" && ", "; ", ";", "\n", " ;\n", "&&\n", "\n\n", " "])
SCRIPTS = st.lists(st.one_of(PLAIN, PLAIN, MARKS), min_size=1, max_size=9).map(" ".join)


def shown(part: object) -> object:
    """Write a tree so that two of them can be compared."""
    if is_dataclass(part):
        named = {field.name: shown(getattr(part, field.name)) for field in fields(part)}
        return type(part).__name__, named
    return tuple(map(shown, part)) if isinstance(part, tuple) else part


@pytest.mark.property
@given(SCRIPTS)
def test_plain_words_are_read_as_the_grammar_reads_them(text: str) -> None:
    plain = parse_plain(text)

    if plain is not None:
        assert shown(plain) == shown(parse_all(text))


def test_the_common_case_needs_no_grammar() -> None:
    for text in (
        "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 8",
        "ray start --head --port=6379 && exec vllm serve org/model --pipeline-parallel-size 2",
        "ray start --block --address=\ue0020\ue003:6379",
    ):
        assert parse_plain(text) is not None


@pytest.mark.parametrize("command", [["vllm", "serve", "M"], ["sh", "-c", "vllm serve M -tp 8"]])
def test_a_command_without_syntax_loads_no_grammar(command: list[str]) -> None:
    code = (
        "import sys; import kthena_components; from kthena_components.core.engines import *\n"
        f"assert read_command({command}, {{}}).engine == 'vllm'\n"
        "sys.exit('tree_sitter' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Watched:
    """The grammar's parser, which notes what it is given."""

    def __init__(self) -> None:
        self.parser = tree._parser()
        self.given = b""

    def parse(self, source: bytes) -> object:
        self.given += source
        return self.parser.parse(source)


@pytest.mark.parametrize("script", ["{\U00031860", "A=é; vllm serve $A", "x\ue0020\ue003 \u3000"])
def test_the_grammar_is_given_nothing_but_ascii(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scanner may end the process on other characters: tree-sitter-bash issue 337."""
    watched = Watched()
    monkeypatch.setattr(tree, "_parser", lambda: watched)

    tree._parse.__wrapped__(script)

    assert watched.given.isascii()
    assert len(watched.given) == len(script.encode())


@pytest.mark.property
@given(st.text(max_size=60))
def test_no_text_makes_the_parser_raise(text: str) -> None:
    parse(text)


@for_each(
    "script",
    [
        "A=8\\\n9; vllm serve M -tp $A",
        "read A <<< 8\\\n9; vllm serve M -tp $A",
        "A=x{$B,c} vllm serve M -tp 8",
        "vllm serve `a` `b` -tp 8",
        "vllm serve M -tp 8 a\r\n",
        "then vllm serve M -tp 8",
        "if a; then if b; vllm serve M -tp 8",
        "x a;;vllm serve M -tp 8",
        "cat <<E > f &&\nbody\nE\nvllm serve M -tp 8",
        "cat <<E\nE; vllm serve M -tp 8\n",
        '[ "$a" \\< b ]; vllm serve M -tp 8',
        'vllm serve "${A:-it\'s}" -tp 8',
        "coproc vllm serve M -tp 8",
        "vllm serve M -tp 8 {fd}>x",
        "vllm serve M -tp 8 -2>x",
        "set -euo2>&1; vllm serve M -tp 8",
        "vllm serve M -tp 8 99999999999999999999>x",
        "vllm serve M -tp 8\0",
        "x\n" * LONGEST + "vllm serve M -tp 8",
        "\n- A=8; vllm serve M -tp $A",
        "A=(" * 2000 + "vllm serve M -tp 8",
        "( " * 200 + "vllm serve M -tp 8" + " )" * 200,
    ],
)
def test_what_the_grammar_gets_wrong_is_not_read(script: str) -> None:
    facts = read_command(["bash", "-c", script], {})

    assert isinstance(parse(script), Unknown)
    assert facts is not None
    assert isinstance(facts.tensor, Unknown)


def test_a_loop_that_may_end_the_script_leaves_nothing_sure_behind_it() -> None:
    script = "for X in $L 1; do if [ $A ]; then exit; fi; break; done\nvllm serve M -tp 8"

    facts = read_command(["bash", "-c", script], {})

    assert facts is not None
    assert isinstance(facts.tensor, Unknown)


@for_each(
    ("script", "words"),
    [
        ("A=8 B=9\nvllm serve -tp $A", "-tp 8"),
        ("A=8 B=9\nwhile false; do :; done; vllm serve -tp $A", "-tp 8"),
        ("vllm serve > /log -tp 8", "-tp 8"),
        ("vllm serve -tp 8>/log -pp 2", "-tp -pp 2"),
        ("true && vllm serve -tp 8 > /log || echo failed", "-tp 8"),
        ("set -- a b; vllm serve $1x $2 $10", "ax b a0"),
        ('A=" x "; vllm serve "$A y  $A|"', " x  y   x |"),
        ("X=a.b.c; P=.; vllm serve ${X%%$P*} ${X//\\./-}", "a <late>"),
        ("cat <<E && vllm serve -tp 8\nx\nE", "-tp 8"),
        ("vllm serve \\\n  -tp 8 \\\n  # -pp 2\n", "-tp 8"),
        ("! vllm serve -tp 8 | cat", "-tp 8"),
        ("vllm serve -tp 8\\\n9 -pp\\\n  2", "-tp 89 -pp 2"),
        ('A=("" $(cat /f)); vllm serve -tp "${A[@]:-8}"', "-tp <late>"),
        ('A=(4 $(cat /f)); vllm serve -tp "${A[@]:-8}"', "-tp 4 <late>"),
        ("if (exit 3); then :; else vllm serve -tp $?; fi", "-tp 3"),
        ("(exit 3); case a in a) vllm serve -tp $?;; esac", "-tp 3"),
        ("(exit 3); case a in a) ;; esac; vllm serve -tp $?", "-tp 0"),
        ("(exit 3); case $(exit 4) in *) vllm serve -tp $?;; esac", "-tp <late>"),
        ("declare -r TP={1..3}\nvllm serve -tp $?", "-tp <late>"),
        ("vllm serve $(TP) -pp 2 && true", "<late> -pp 2"),
        ("python3 - <<'E'\nimport os\nE\nvllm serve -tp 8", "-tp 8"),
        ("vllm serve - \\\n <<E -tp 8\nx\nE", "- -tp 8"),
        ("vllm serve - 2>/log -tp 8", "- -tp 8"),
        ("vllm serve \u3000 é=\U00031860 {a,\U00031860}", "\u3000 é=\U00031860 a \U00031860"),
    ],
)
def test_what_the_grammar_cuts_otherwise_is_put_right(script: str, words: str) -> None:
    with recorded():
        facts = read_command(["bash", "-c", script], {"TP": Unknown("<late>")})

    assert facts is not None
    given = " ".join(facts.options["words"][2:])
    assert re.sub("\ue002[0-9]+\ue003", "<late>", given) == words
