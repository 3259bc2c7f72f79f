"""Scripts whose line continuation is lost: what a real bash runs, and what is said of it."""

import shutil
import subprocess

import pytest

from kthena_components.core.engines import CommandFacts, read_command
from kthena_components.core.engines.bash.run_script import stray_options
from kthena_components.core.engines.bash.syntax import Block, parse

OPTION = "--pipeline-parallel-size"
LOST = {
    "a comment": f"vllm serve M -tp 8 \\\n  # two nodes\n  {OPTION} 2\n",
    "a continued comment": f"vllm serve M -tp 8 \\\n  # two nodes \\\n  {OPTION} 2\n",
    "a blank": f"vllm serve M -tp 8 \\ \n  {OPTION} 2\n",
    "a tab": f"vllm serve M -tp 8 \\\t\n  {OPTION} 2\n",
    "no backslash": f"vllm serve M -tp 8\n{OPTION} 2\n",
    "no backslash in a function": f'f() {{\n  vllm serve "$1" -tp 8\n  {OPTION} 2\n}}\nf M\n',
    "no backslash behind exec": f"(exec vllm serve M -tp 8)\n{OPTION} 2\n",
    "a variable": f"X=8\nvllm serve M -tp $X\n  {OPTION} 2\n",
}
WHOLE = {
    "a backslash": f"vllm serve M -tp 8 \\\n  {OPTION} 2\n",
    "two lines": f"vllm serve M \\\n -tp 8 \\\n  {OPTION} 2 \\\n",
    "an odd number of them": f"vllm serve M -tp 8 \\\n  {OPTION} 2 \\\\\\\n",
    "a string": f'vllm serve M -tp 8 {OPTION} 2\necho "\n{OPTION}"\n',
    "a here-document": f"cat <<E\n{OPTION} 2\nE\nvllm serve M -tp 8 {OPTION} 2\n",
    "an array": f"A=(\n  {OPTION} 2\n)\nvllm serve M -tp 8 ${{A[@]}}\n",
    "a pattern": f"case $0 in\n{OPTION}) ;;\nesac\nvllm serve M -tp 8 {OPTION} 2\n",
}


def _read(script: str) -> CommandFacts:
    facts = read_command(["bash", "-c", script], {})
    assert facts is not None
    return facts


def _missing(script: str) -> bool:
    """Return whether bash looks for the option as a command."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash to compare with")
    text = f"vllm() {{ :; }}\n{script.replace('exec vllm', 'vllm')}"
    done = subprocess.run([bash, "-c", text], capture_output=True, text=True, check=False)
    return f"{OPTION}: command not found" in done.stderr


@pytest.mark.parametrize("script", LOST.values(), ids=LOST)
def test_an_option_that_the_shell_runs_as_a_command_is_reported(script: str) -> None:
    assert _missing(script)
    facts = _read(script)
    (problem,) = (p for p in facts.problems if p.flag == OPTION)
    assert problem.hard
    assert problem.text.startswith(f"the shell runs {OPTION} as a separate command")
    assert (facts.tensor, facts.pipeline) == (8, 1)


@pytest.mark.parametrize("script", WHOLE.values(), ids=WHOLE)
def test_an_option_of_the_engine_is_not(script: str) -> None:
    assert not _missing(script)
    facts = _read(script)
    assert [p for p in facts.problems if p.flag == OPTION] == []
    assert facts.tensor == 8


def test_a_line_behind_exec_is_reported_though_nothing_reaches_it() -> None:
    facts = _read(f"exec vllm serve M -tp 8\n{OPTION} 2\n")
    assert [p.flag for p in facts.problems] == [OPTION]


def test_it_is_reported_once() -> None:
    text = f"vllm serve M\n{OPTION} 2\n{OPTION} 2\n"
    assert [p.flag for p in _read(text).problems] == [OPTION]
    block = parse(text)
    assert isinstance(block, Block)
    assert [*stray_options(text, block)] == [OPTION, OPTION]


def test_a_backslash_at_the_end_of_a_script_continues_nothing() -> None:
    facts = _read("N=2\nvllm serve M -tp 8 -pp ${N} \\\n")
    assert (facts.tensor, facts.pipeline, facts.problems) == (8, 2, ())
