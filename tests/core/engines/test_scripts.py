"""Shell scripts: what reaches the engine after quotes, variables, branches and loops."""

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.values.unknown import MaybeInt, MaybeText, SetLater, Unknown
from tests.support.for_each import for_each


def run(script: str, *rest: str, **env: str) -> CommandFacts:
    facts = read_command(["sh", "-c", script, *rest], env)
    assert facts is not None
    return facts


def run_bash(script: str, **env: MaybeText) -> CommandFacts:
    facts = read_command(["bash", "-c", script], env)
    assert facts is not None
    return facts


@for_each(
    "script",
    [
        "vllm serve M -tp 8",
        "exec vllm serve M -tp '8'",
        "\\vllm serve M -t\\p 8",
        'set -ex; vllm serve "M" -tp "8"',
        "cd /x && vllm serve M \\\n  -tp 8",
        "vllm serve M -tp=8 > log 2>&1",
        "vllm serve M -tp 8 2>/dev/null | tee /log",
        "vllm serve M -tp 8 &> log & wait",
        "{ vllm serve M -tp 8; }",
        "(vllm serve M -tp 8)",
        "until nc -z db 1; do sleep 1; done; vllm serve M -tp 8",
        "until nc -z db 1; do sleep 1; done && vllm serve M -tp 8",
        "until nc -z db 1; do echo no; done && echo yes && vllm serve M -tp 8",
        "until nc -z db 1; do sleep 1; done || exit 1; vllm serve M -tp 8",
        "while true; do vllm serve M -tp 8; sleep 1; done",
        "# don't vllm serve M -tp 4\nvllm serve M -tp 8 # not 4",
        "cat <<EOF > x\nvllm serve 'M -tp 4\nEOF\nvllm serve M -tp 8",
        "cat <<-'EOF' > x\n\tvllm serve M -tp 4\n\tEOF\nvllm serve M -tp 8",
        "TP=4 env -u A B=c nohup vllm serve M -tp 8",
        "numactl --cpunodebind 0 timeout 10 vllm serve M -tp 8",
        "bash -c 'vllm serve M -tp 8'",
        "bash -c 'vllm serve M -tp 8 &' && ray start --head",
        "bash -euo pipefail -c 'exec vllm serve M -tp 8'",
        "echo $'it\\'s'; vllm serve M -tp 8",
        "diff <(echo ') ') x; vllm serve M -tp 8",
        "vllm serve M a#b -tp 8",
        "vllm serve M $NONE#b -tp 8",
        "vllm serve M ${NONE:-a '-tp' \"8\"}",
        'vllm serve "M \\x" -tp 8 && echo "a\\\nb"',
        "echo $(echo \\) \")\" ')'); vllm serve M -tp 8",
        'vllm serve "M\\$\\"x" -tp 8 $',
        'vllm serve "${NONE:-its $NONE \\" M}" -tp 8',
        "case $WORKER_INDEX in 0) vllm serve M -tp 8;; *) sleep 1;; esac",
        "serve() { vllm serve M -tp 8; }; serve",
    ],
)
def test_a_script_hands_the_engine_its_words(script: str) -> None:
    facts = run(script)

    assert (facts.engine, facts.tensor) == ("vllm", 8)
    assert not any(problem.hard for problem in facts.problems)


@for_each(
    ("script", "tensor"),
    [
        ("vllm serve M -tp $TP", 8),
        ("vllm serve M -tp ${TP}", 8),
        ('vllm serve M -tp "${TP}"', 8),
        ("vllm serve M -tp $(TP)", 8),
        ("vllm serve M -tp ${NO:-4}", 4),
        ("vllm serve M -tp ${NO-4}", 4),
        ("vllm serve M -tp ${NO:=${NOR:-2}}", 2),
        ("vllm serve M -tp ${EMPTY:-4}", 4),
        ("vllm serve M -tp ${TP:-4}", 8),
        ("vllm serve M -tp ${TP:?missing}", 8),
        ("vllm serve M -tp ${TP:+4}", 4),
        ("vllm serve M ${NO:+-tp 4}", 1),
        ('vllm serve M -tp "${NO:-"4"}"', 4),
        ("vllm serve M -tp $((TP * 2))", 16),
        ("vllm serve M -tp $(( (TP + 8) / 3 % 4 - -1 ))", 2),
        ("vllm serve M $FLAGS", 8),
        ("vllm serve M $BLANKS", 8),
        ("TP=4; vllm serve M -tp $TP", 4),
        ("export TP=4 X; vllm serve M -tp $TP", 4),
        ("TP=4 && vllm serve M -tp $TP", 4),
        ("unused=1 TP=4; vllm serve M -tp ${TP}", 4),
        ("vllm serve M -tp ${1:-4}", 4),
        ("vllm serve M -tp ${TP%x}", 8),
        ("vllm serve M -tp $((" + "1 + " * 30 + "1))", 31),
        ("vllm serve M -tp " + "${A:-" * 10 + "4" + "}" * 10, 4),
        ("[ -n x ] && TP=4; vllm serve M -tp $TP", 4),
        ("true || TP=4; vllm serve M -tp $TP", 8),
        ("(TP=4); vllm serve M -tp $TP", 8),
        ("TP=(4 8); vllm serve M -tp $TP", 4),
    ],
)
def test_a_variable_is_expanded_as_the_shell_does(script: str, tensor: int) -> None:
    blanks = "  -tp\t8 "
    facts = run(script, TP="8", FLAGS="--tensor-parallel-size 8", EMPTY="", BLANKS=blanks)

    assert (facts.tensor, facts.problems) == (tensor, ())


@for_each(
    ("script", "because"),
    [
        ("vllm serve M -tp $NO", "NO has no literal value in this container's env"),
        ("vllm serve M -tp $(nproc)", "NPROC"),
        (
            "vllm serve M -tp $(nvidia-smi -L | wc -l)",
            "the shell computes $(nvidia-smi -L | wc -l)",
        ),
        ("vllm serve M -tp `nproc`", "the shell computes `nproc` when the pod runs"),
        ("vllm serve M -tp `'nproc'`", "the shell computes `'nproc'` when the pod runs"),
        ("vllm serve M -tp $((NO + 1))", "NO has no literal value in this container's env"),
        ("vllm serve M -tp $((TP ** 2))", "the shell computes $((TP ** 2)) when the pod runs"),
        ("vllm serve M -tp $((TP / 0))", "its script computes 'TP / 0', which is not a number"),
        ("vllm serve M -tp $((TP++ + 1))", "the shell computes $((TP++ + 1)) when the pod runs"),
        ("true && [ -f /x ] && TP=4; vllm serve M -tp $TP", "TP is set in a branch of the script"),
        ("check && TP=4; vllm serve M -tp $TP", "TP is set in a branch of the script"),
        ("check || TP=4; vllm serve M -tp $TP", "TP is set in a branch of the script"),
        ("for TP in $NO; do :; done; vllm serve M -tp $TP", "TP is set by a loop of the script"),
        (
            "for TP in 1 2; do vllm serve M -tp $TP; done",
            "the script starts 2 engines that differ in it",
        ),
        ("A=4; A+=8; vllm serve M -tp $A", "only bash supports A+="),
        ("vllm serve M -tp $'8'", "only bash reads $'…', and sh may be another shell"),
        ("vllm serve M -tp {8,}", "only bash expands braces, and sh may be another shell"),
        ("[[ 1 = 1 ]] && TP=4; vllm serve M -tp $TP", "TP is set in a branch of the script"),
        ("((TP = 4)); vllm serve M -tp $TP", "TP is computed by the script"),
        ("if [ $X ]; then TP=4; fi; vllm serve M -tp $TP", "TP is set in a branch of the script"),
        (
            "until a; do [ -f b ]; done && vllm serve M -tp 8",
            "the script starts it on some paths only, and perhaps on none",
        ),
        ("read -r TP < f; vllm serve M -tp $TP", "the script reads TP itself"),
        ("vllm serve M -tp $(LOOP)", "LOOP is set after the variable that refers to it"),
    ],
)
def test_what_the_shell_only_knows_later_is_unknown(script: str, because: str) -> None:
    if because == "NPROC":
        because = "nproc has no literal value in this container's env"
    tensor = run(script, TP="8", LOOP="$(LOOP)").tensor

    assert isinstance(tensor, Unknown)
    assert tensor.because.startswith(because)


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("it\\'s", "it's"),
        ("'it'\\''s'", "it's"),
        ('"it\'s"', "it's"),
        ('"\\$A \\a \\\\"', "$A \\a \\"),
        ("a'b'\"c\"d", "abcd"),
        ("${NO:-it\\'s}", "it's"),
    ],
)
def test_quotes_are_removed_as_the_shell_does(written: str, model: str) -> None:
    assert run(f"vllm serve {written} -tp 8").model == model


@pytest.mark.parametrize(
    ("script", "tensor"),
    [
        ("vllm serve M $'-tp' 8", 8),
        ("vllm serve $'it\\'s' -tp 8", 8),
        ("function f { true; }; serve() { vllm serve M -tp 8; }; f; serve", 8),
        ("A='-tp'; A+=' 4'; vllm serve M $A", 4),
        ("[[ $TP == [0-9] ]] && TP=4; vllm serve M -tp $TP", 4),
        ("((TP = 4)); vllm serve M -tp $TP", 4),
        ("vllm serve M -{t,}p=4", 4),
    ],
)
def test_bash_reads_more_than_every_shell_does(script: str, tensor: int) -> None:
    assert run_bash(script, TP="8").tensor == tensor


def test_parameters_of_the_script_are_the_items_behind_it() -> None:
    assert run('vllm serve "$@" -pp $1', "sh", "2", "-tp", "8").pipeline == 2
    assert run('exec vllm serve M "$@"', "sh", "-tp", "8").tensor == 8
    assert run("vllm serve $0 $*", "M", "-tp", "8").tensor == 8
    assert run("vllm serve M -tp ${1}", "sh", "8").tensor == 8
    assert run("vllm serve M -tp 8 $@").tensor == 8
    assert run("vllm serve M -tp $#", "sh", "a", "b").tensor == 2


def test_a_doubled_dollar_is_one_dollar_to_kubernetes() -> None:
    assert run("vllm serve M -tp $$TP", TP="8").tensor == 8
    literal = read_command(["vllm", "serve", "M", "-tp", "$$(TP)"], {"TP": "8"})

    assert literal is not None
    assert literal.problems[0].text == "--tensor-parallel-size takes an integer, not '$(TP)'"


def test_env_values_may_refer_to_those_before_them() -> None:
    assert run("vllm serve M -tp $A", B="8", A="$(B)").tensor == 8

    behind = run("vllm serve M -tp $A", A="$(B)", B="8").tensor
    assert behind == SetLater("B is set after the variable that refers to it", "B")


def test_references_are_followed_to_a_limited_depth() -> None:
    chain = {f"V{n}": f"$(V{n - 1})" for n in range(1, 20)}
    tensor = run("vllm serve M -tp $V19", V0="8", **chain).tensor

    assert tensor == Unknown("V11 refers to other variables more than 8 deep")


def test_a_word_that_may_hold_flags_leaves_open_what_is_not_stated() -> None:
    facts = run('vllm serve M "${ARGS[@]}" -tp 8')

    because = "${ARGS[@]} may contain any flag"
    assert (facts.tensor, facts.pipeline) == (8, Unknown(because))


def test_an_unknown_flag_name_leaves_open_what_is_not_stated() -> None:
    facts = run("vllm serve M -tp 8 --$FLAG=3")

    assert (facts.tensor, facts.pipeline) == (8, Unknown("--$FLAG=3 may be any flag"))


BRANCHES = "if [ $X = 0 ]; then vllm serve M -tp 8 -pp {}; else vllm serve M -tp 8 --headless; fi"


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [(1, 1), (2, Unknown("the script starts 2 engines that differ in it"))],
)
def test_branches_are_known_where_they_agree(pipeline: int, expected: MaybeInt) -> None:
    facts = run(BRANCHES.format(pipeline))

    assert (facts.tensor, facts.pipeline) == (8, expected)
    assert isinstance(facts.headless, Unknown)


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve A -tp 4 & vllm serve B -tp 4",
        "vllm serve A -tp 4 &\nsleep 9\nvllm serve B -tp 4 & wait",
        "for i in 0 1; do vllm serve A -tp 4 & done; wait",
        "bash -c 'vllm serve A -tp 4 &'; sleep 9; vllm serve B -tp 4",
        "vllm serve A -tp 4 & bash -c 'vllm serve B -tp 4'",
    ],
)
def test_engines_side_by_side_are_not_one_engine(script: str) -> None:
    assert run(script).tensor == Unknown("the script starts several engines side by side")


def test_a_script_that_starts_no_engine_gives_nothing() -> None:
    assert read_command(["sh", "-c", "echo 'vllm serve M"], {}) is None
    assert read_command(["bash", "/opt/vllm/start.sh"], {}) is None
    assert read_command(["bash", "-c"], {"A": "vllm"}) is None


def test_variables_cannot_blow_a_script_up() -> None:
    facts = run("vllm serve M $A -tp $A", C="c" * 1000, B="$(C)" * 1000, A="$(B)" * 1000)

    assert facts.tensor == Unknown("variables insert more than 2097152 characters")


@for_each(
    "written",
    [
        *("${TP^^}", "${TP,,}", "${TP/8/4}", "${TP//8/4}", "${TP/%8/4}", "${TP:0:1}", "${TP: -1}"),
        *("${#TP}", "${TP@Q}", "${A[@]:1}", '"${A[@]/4/8}"', "${A[@]%4}", "${TP##+(8)}"),
        *("$((TP | 1))", "$((TP << 1))", "$((TP ** 2))", "$((TP ? 4 : 2))", "$((2#100))"),
        *("$(printf %d 4)", "$(printf %3s 4)", "$(printf %x 4)", "$(basename /a/4)", "$'\\x34'"),
        *("${TP:(B=4)}", "${TP/8/${B:=4}}"),
    ],
)
def test_what_is_not_read_is_not_known_and_the_engine_still_is(written: str) -> None:
    facts = run_bash(f"A=(8 4); vllm serve M -pp 2 -tp {written}", TP="8")

    assert isinstance(facts.tensor, Unknown)
    assert facts.pipeline == 2


@for_each(
    "script",
    [
        *("echo ${A:(TP++)}", "echo ${A:(TP=4)}", "echo ${A/8/${TP:=4}}", ": ${A//8/$((TP=4))}"),
        *("(( A ? (TP=4) : 1 ))", "(( TP <<= 1 ))", "(( TP |= 1 ))", ": $((TP++ ** 2))"),
        *("let TP=4", "let TP++", 'let "A = 3" TP*=2', "printf -v TP %s 4", "printf -vTP %d 4"),
        *('let "$X"', 'printf -v "$X" 4', "mapfile TP < /f", "readarray -t TP < /f"),
    ],
)
def test_what_is_not_read_may_have_set_a_variable(script: str) -> None:
    facts = run_bash(f"A=8; TP=8; {script}; vllm serve M -tp $TP -pp 2", X=Unknown("late"))

    assert isinstance(facts.tensor, Unknown)
    assert facts.pipeline == 2


@for_each(
    "script",
    [
        'printf "%-9s %d\\n" x 1',
        "printf -v LINE %5d 1",
        "A=8; A=${A//8/4}",
        "A=8; echo ${A^^} ${#A} ${A:0:1}",
        "A=x; echo $(basename $A)",
    ],
)
def test_an_engine_behind_what_is_not_read_is_as_certain_as_before(script: str) -> None:
    facts = run_bash(f"set -e; {script}; vllm serve M -tp 8")

    assert (facts.tensor, facts.problems) == (8, ())


def test_an_operator_that_is_not_read_may_start_an_engine() -> None:
    facts = run_bash("A=8; echo ${A/8/$(vllm serve M -tp 4)}; vllm serve M -tp 8")

    assert isinstance(facts.tensor, Unknown)


def test_a_part_of_a_pods_own_name_still_varies_between_pods() -> None:
    facts = run_bash('[ "${HOSTNAME: -1}" = 0 ] && vllm serve M -tp 8 || vllm serve M -tp 8 -pp 2')

    assert facts.tensor == 8


def test_text_before_parameters_that_may_be_nothing_may_belong_to_the_next() -> None:
    """If A is empty, the engine gets `m--enable-expert-parallel`, and not the switch."""
    facts = run_bash('set -- $A --enable-expert-parallel; vllm serve "m$@" -tp 2')
    assert facts.expert is not True


def test_text_behind_parameters_that_may_be_nothing_may_belong_to_those_before() -> None:
    """If A is empty, the tensor size is 16."""
    facts = run_bash('set -- 1 $A; vllm serve m --tensor-parallel-size "$@6"')
    assert isinstance(facts.tensor, Unknown)
