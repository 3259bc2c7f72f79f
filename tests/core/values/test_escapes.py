"""A search in a string misses no word that a parser reads."""

import base64

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.values.values_in_text import may_have

WORD = "vllm/gpu"
BINARY = base64.b64encode(WORD.encode()).decode()


def has_word(text: str) -> bool:
    return WORD in text


@st.composite
def written(draw: st.DrawFn) -> str:
    """Write a word as a quoted string of YAML, in one of the ways for each character."""
    before, after = (draw(st.text("a \\\"'x\n:,[]{}#", max_size=4)) for _ in range(2))
    made = json_text(before)
    for character in WORD:
        code = ord(character)
        ways = [
            character,
            f"\\x{code:02x}",
            f"\\u{code:04X}",
            f"\\U{code:08x}",
            f"\\\n  {character}",
        ]
        ways += ["\\/"] if character == "/" else []
        made += draw(st.sampled_from(ways))
    around = draw(
        st.sampled_from(["{}", "[{}]", "a: {}", "- {}", "- 'b\\'\n- {}", "- |\n  c\\\n- {}"])
    )
    return around.replace("{}", f'"{made}{json_text(after)}"')


def json_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(written())
def test_an_escaped_word_is_found(text: str) -> None:
    assert WORD in str(yaml.safe_load(text))
    assert may_have(text, has_word)


@pytest.mark.parametrize(
    "text",
    [
        f"a: !!binary {BINARY}",
        f"a: !<tag:yaml.org,2002:binary> {BINARY}",
        f"%TAG !y! tag:yaml.org,2002:\n---\na: !y!binary {BINARY}",
        f"a: !!b%69nary {BINARY}",
        'values: "a: \\"vllm\\\\x2fgpu\\""',
    ],
)
def test_a_word_behind_a_tag_or_in_a_text_of_a_text_is_found(text: str) -> None:
    assert may_have(text, has_word)


@pytest.mark.parametrize(
    "text",
    ["", "a: b", 'run: "a \\\n b"', "a: !ref b", "[ ! -f a ] && date +%s", "a: '\\x76llm/gpu'"],
)
def test_other_texts_are_not(text: str) -> None:
    assert not may_have(text, has_word)
