"""What a stack may say of Secrets, each refusal with its whole text."""

from typing import Any, Final

import pytest

from kthena_components.resources.stack import load_stack
from tests.stacks.handed import TOKEN, handed, refusal

KEY: Final = "secrets[0].data.HUGGING_FACE_HUB_TOKEN"
RENDERED: Final = (
    "secrets[0]: 'default/hf-token' would be written in plain text to "
    "rendered/prod/1-manifest/v1-secret-default-hf-token.yaml. Add hf-token to "
    "the list kthena-components:allow_plain_secrets and "
    "keep the file out of version control, or write output: cluster. "
    "[secret-rendered]"
)
UNUSED: Final = (
    "hf_token: is a secret config value that no entry of secrets names. Name it in the data of a "
    "Secret, or run 'pulumi config rm hf_token --stack prod'. [secret-unused]"
)
SLIPS: Final[dict[str, tuple[dict[str, Any], dict[str, str], list[str]]]] = {
    "a value that is not set": (
        {}, {},
        [(f"{KEY}: there is no config value 'hf_token'. Run 'pulumi config set --secret hf_token "
         "--stack prod', which prompts for the value. [secret-missing]")],
    ),
    "a value in plain text": (
        {"hf_token": "in-the-open"}, {},
        [(f"{KEY}: the config value 'hf_token' is in plain text. Run 'pulumi config set --secret "
         "hf_token --stack prod', which encrypts it, and revoke the old value if anyone else could "
         "read it. [secret-in-plain-text]")],
    ),
    "a field of the stack as a value": (
        {KEY: "servings"}, TOKEN,
        [UNUSED, (f"{KEY}: 'servings' is a field of the stack, not a separate value. Name "
         "another config key, such as hf_token. [secret-missing]")],
    ),
    "a key that Kubernetes refuses": (
        {"secrets[0].data": {"a b": "hf_token", "HUGGING_FACE_HUB_TOKEN": "hf_token"}}, TOKEN,
        [("secrets[0].data.a b: 'a b' is not a valid key of a Secret: letters, digits, '-', '_' "
          "and '.'. "
         "Write such a value. [pattern]")],
    ),
    "a name that Kubernetes refuses": (
        {"secrets[0].name": "HF"}, TOKEN,
        [("secrets[0].name: is 'HF', but must be lower-case letters, digits, dashes and dots. "
         "Write such a value. [pattern]")],
    ),
    "no keys": (
        {"secrets[0].data": {}}, TOKEN,
        ["secrets[0].data: is empty. Give at least one. [length]", UNUSED],
    ),
    "the same Secret twice": (
        {"secrets[1]": {"name": "hf-token", "data": {"token": "hf_token"}}}, TOKEN,
        [("secrets[1].name: 'default/hf-token' is already the name of secrets[0]. Remove or rename "
         "one of the two. [name-once]")],
    ),
    "a key that its pods do not use": (
        {"secrets[0].data": {"HF_TOKEN": "hf_token"}}, TOKEN,
        [("servings[0].roles[0].hugging_face_token: uses the key 'HUGGING_FACE_HUB_TOKEN', but the "
          "Secret 'hf-token' of this stack has no such key, and the container does not start "
          "without it. Known: HF_TOKEN. [secret-key-exists]")],
    ),
    "a key that its pods have by another slip": (
        {"servings[0].roles[0].hugging_face_token.key": "HUGING_FACE_HUB_TOKEN"}, TOKEN,
        [("servings[0].roles[0].hugging_face_token: uses the key 'HUGING_FACE_HUB_TOKEN', but the "
          "Secret 'hf-token' of this stack has no such key, and the container does not start "
          "without it. Write 'HUGGING_FACE_HUB_TOKEN'. [secret-key-exists]")],
    ),
    "a Secret in a file": ({"output": "render"}, TOKEN, [RENDERED]),
    "leave for a Secret that there is not": (
        {"output": "render", "allow_plain_secrets": ["hf-tokn"]}, TOKEN,
        [("allow_plain_secrets[0]: there is no 'hf-tokn' in secrets. Write 'hf-token'. "
         "[known-value]"), RENDERED],
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_about_a_secret_is_refused_with_the_command_that_mends_it(slip: str) -> None:
    changes, secrets, expected = SLIPS[slip]
    assert refusal(handed("prod", changes, secrets)) == expected


ADVICE: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "none": ({}, []),
    "a name of its own": ({"secrets[1]": {"name": "proxy", "data": {"key": "hf_token"}}}, []),
    "a name": (
        {"servings[0].roles[0].hugging_face_token.name": "hf-tokn"},
        [("secrets[0]: no pod of this stack uses default/hf-token, but "
          "servings[0].roles[0].hugging_face_token uses default/hf-tokn, which the stack does not "
          "create. Write 'hf-token' there, or ignore this if both exist for other reasons. "
          "[secret-used]")],
    ),
    "a namespace": (
        {"secrets[0].namespace": "serving"},
        [("secrets[0].namespace: no pod of this stack uses serving/hf-token, but "
          "servings[0].roles[0].hugging_face_token uses default/hf-token, which the stack does not "
          "create. Write namespace: default, or ignore this if both exist for other reasons. "
          "[secret-used]")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", ADVICE)
def test_a_secret_that_a_slip_leaves_unused_is_a_warning(slip: str) -> None:
    changes, expected = ADVICE[slip]
    assert list(map(str, load_stack(handed("prod", changes)).advice)) == expected


def test_a_secret_that_nothing_uses_is_refused() -> None:
    assert refusal(handed("dev", {}, TOKEN)) == [UNUSED.replace("prod", "dev")]


def test_a_secret_may_be_rendered_when_the_stack_allows_it() -> None:
    allowed = {"output": "render", "allow_plain_secrets": ["hf-token"]}
    assert not refusal(handed("prod", allowed))


@pytest.mark.parametrize("slip", SLIPS)
def test_no_refusal_shows_a_value(slip: str) -> None:
    changes, secrets, _ = SLIPS[slip]
    told = "\n".join(refusal(handed("prod", changes, secrets)))
    assert TOKEN["hf_token"] not in told
    assert "in-the-open" not in told
