"""The commands of a script by where they stand: what is left when one of them is taken out."""

import pytest

from kthena_components.core.engines.bash.tree import Span, commands_of


def texts(script: str) -> list[str]:
    return [span.text(script) for span in commands_of(script)]


def test_commands_of_lists_pipes_and_loops_are_found() -> None:
    script = "set -e; A=1 run é 'x y' > log && until ready; do sleep 1; done | tee out &"
    assert texts(script) == ["set -e", "A=1 run é 'x y'", "> log", "ready", "sleep 1", "tee out"]


def test_scripts_in_quotes_are_looked_into() -> None:
    script = 'bash -lc "one; two" three'
    (command,) = commands_of(script)
    assert [span.text(script) for word in command.words for span in word.inner] == ["one", "two"]
    whole = '"one; two &"'
    (command,) = commands_of(whole)
    assert [span.text(whole) for word in command.words for span in word.inner] == ["one", "two"]


def test_a_command_is_replaced_by_one_that_does_nothing_and_a_word_by_nothing() -> None:
    script = "first && A=é second x"
    one, other = commands_of(script)
    assert one.removed(script) == ": && A=é second x"
    assert other.words[0].removed(script) == "first &&  second x"


@pytest.mark.parametrize("script", ["(" * 2000, "$(" * 1500, "'", "if", "{" * 3000 + "a", ""])
def test_odd_scripts_break_nothing(script: str) -> None:
    assert all(isinstance(span, Span) for span in commands_of(script))
