"""A token on its way from the config into a Secret, under the real engine."""

import base64
from pathlib import Path

import pytest

from tests.pulumi.lives import OWN, TOKEN, render_to_files
from tests.support.engine import ROOT, Run, Stack

pytestmark = pytest.mark.programs
NEW_TOKEN = f"new-{TOKEN}"


def assert_hidden(token: str, stack: Stack, *runs: Run) -> None:
    for form in (token, base64.b64encode(token.encode()).decode()):
        assert form not in stack.state_text
        assert form not in stack.settings.read_text()
        assert not [run for run in runs if form in run.text or form in str(run.events)]


def test_a_token_is_rendered_only_when_the_stack_allows_it(tmp_path: Path) -> None:
    stack = Stack.make(ROOT, "prod", tmp_path)
    render_to_files(stack)
    unset = stack.up()
    stack.set_secret("hf_token", TOKEN)
    refused = stack.up()
    head = "stack 'prod' is refused, and nothing was changed:"
    file = "  stacks/Pulumi.prod.yaml: kthena-components:"
    rendered = (
        f"{file}secrets[0]: 'default/hf-token' would be written in plain text to "
        "rendered/prod/1-manifest/v1-secret-default-hf-token.yaml. Add hf-token to "
        "the list kthena-components:allow_plain_secrets and "
        "keep the file out of version control, or write output: cluster. "
        "[secret-rendered]"
    )
    missing = (
        f"{file}secrets[0].data.HUGGING_FACE_HUB_TOKEN: there is no config value 'hf_token'. Run "
        "'pulumi config set --secret hf_token --stack prod', which prompts for the value. "
        "[secret-missing]"
    )
    assert unset.messages[0] == f"{head} 2 problems\n{missing}\n{rendered}"
    assert refused.messages[0] == f"{head} 1 problem\n{rendered}"
    assert not stack.resources
    assert not stack.rendered()
    assert_hidden(TOKEN, stack, unset, refused)


def test_a_new_token_is_written_into_the_same_secret(tmp_path: Path) -> None:
    stack = Stack.make(ROOT, "prod", tmp_path)
    render_to_files(stack)
    stack.change(lambda config: config.update({f"{OWN}allow_plain_secrets": ["hf-token"]}))
    stack.set_secret("hf_token", TOKEN)
    first = stack.up()
    before = stack.rendered()["Secret/hf-token"]["data"]
    stack.set_secret("hf_token", NEW_TOKEN)
    second = stack.up()
    after = stack.rendered()["Secret/hf-token"]["data"]
    key = "HUGGING_FACE_HUB_TOKEN"
    assert base64.b64decode(before[key]).decode() == TOKEN
    assert base64.b64decode(after[key]).decode() == NEW_TOKEN
    assert second.changes["update"] == 1
    assert [(step.op, step.kind) for step in second.steps] == [("update", "Secret")]
    assert_hidden(TOKEN, stack, first, second)


def test_a_secret_in_a_serving_is_refused_and_no_piece_of_it_is_shown(tmp_path: Path) -> None:
    stack = Stack.make(ROOT, "dev", tmp_path)
    role = f"{OWN}servings[0].roles[0]"
    for path, value in {
        f"{OWN}servings[0].name": "Pearl_quartz",
        f"{role}.engine.image": "https://me:raven@sable/image",
        f"{role}.engine.parallelism.tensor": "1753",
    }.items():
        stack.set_secret(path, value, "--path")
    runs = stack.preview(), stack.up()
    for run in runs:
        assert run.code != 0
        head, *lines = run.messages[0].splitlines()
        assert head.startswith("stack 'dev' is refused, and nothing was changed: ")
        told = [line.removeprefix(f"  stacks/Pulumi.dev.yaml: {OWN}servings") for line in lines]
        assert "[0].name: is '[secret]', but must be lower-case letters" in "\n".join(told)
        assert any(line.startswith(": contains a secret value, which would be") for line in told)
    for piece in ("Pearl", "quartz", "raven", "sable", "1753"):
        assert_hidden(piece, stack, *runs)
