"""The life of a stack under the real engine: made, left alone, given another image, taken down."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.engine import ROOT, Run, Stack

OWN = "kthena-components:"
TOKEN = "hf_token-of-the-test"  # noqa: S105 - opens nothing
NEW_IMAGE = {
    "vllm/vllm-openai:v0.33.0": "vllm/vllm-openai:v0.32.0",
    "vllm/vllm-openai:v0.11.0": "vllm/vllm-openai:v0.10.2",
    "lmsysorg/sglang:v0.5.3": "lmsysorg/sglang:v0.5.4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A project whose life is lived, and what is peculiar to it."""

    source: Path
    stack: str
    resources: int
    """Resources that it makes, the stack itself and a provider of its own included."""
    remade: int = 0
    """StatefulSets that another image makes anew."""
    updated: int = 0
    """Custom resources that another image changes in place."""
    replaced: int = 0
    """Custom resources that another image makes anew."""
    prepare: Callable[[Stack], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Life:
    """What each command did, and what lay on the disk between them."""

    case: Case
    previewed: Run
    written_by_preview: dict[str, dict[str, Any]]
    created: Run
    outputs: dict[str, Any]
    state: str
    written: dict[str, dict[str, Any]]
    again: Run
    changed: Run
    rewritten: dict[str, dict[str, Any]]
    destroyed: Run
    left: list[dict[str, Any]]
    left_on_disk: dict[str, dict[str, Any]]

    @property
    def runs(self) -> tuple[Run, ...]:
        """All commands in order."""
        return self.previewed, self.created, self.again, self.changed, self.destroyed


def live(case: Case, folder: Path) -> Life:
    """Live a life from the first preview to the last file."""
    stack = Stack.make(case.source, case.stack, folder)
    if case.prepare:
        case.prepare(stack)
    previewed, written_by_preview = stack.preview(), stack.rendered()
    created = stack.up()
    outputs, state, written = stack.outputs, stack.state_text, stack.rendered()
    again = stack.up("--expect-no-changes")
    replace_images(stack)
    changed, rewritten = stack.up(), stack.rendered()
    destroyed = stack.destroy()
    return Life(
        case=case, previewed=previewed, written_by_preview=written_by_preview, created=created,
        outputs=outputs, state=state, written=written, again=again, changed=changed,
        rewritten=rewritten, destroyed=destroyed, left=stack.resources,
        left_on_disk=stack.rendered(),
    )  # fmt: skip


def replace_images(stack: Stack) -> None:
    """Write another image wherever the copied project names one."""
    files = [stack.settings, *stack.project.glob("*.py"), *stack.project.glob("*.yaml")]
    for file in files:
        text = file.read_text()
        for old, new in NEW_IMAGE.items():
            text = text.replace(old, new)
        file.write_text(text)


def render_to_files(stack: Stack) -> None:
    """Make a stack file that is meant for a cluster write files."""
    stack.change(lambda config: config.update({f"{OWN}output": "render"}))


def render_with_token(stack: Stack) -> None:
    """The same for a stack that has a Secret."""
    render_to_files(stack)
    stack.change(lambda config: config.update({f"{OWN}allow_plain_secrets": ["hf-token"]}))
    stack.set_secret("hf_token", TOKEN)


def example(name: str, **counts: Any) -> Case:
    """A project of examples/, without a cluster: the provider's own setting does it."""

    def prepare(stack: Stack) -> None:
        stack.change(lambda config: config.update({"kubernetes:renderYamlToDirectory": "rendered"}))
        if name == "secret-token":
            stack.set_secret("hf_token", TOKEN)

    return Case(source=ROOT / "examples" / name, stack="dev", prepare=prepare, **counts)


CASES = {
    "dev": Case(source=ROOT, stack="dev", resources=11, remade=2),
    "staging": Case(source=ROOT, stack="staging", resources=5, updated=1, prepare=render_to_files),
    "prod": Case(source=ROOT, stack="prod", resources=26, remade=4, prepare=render_with_token),
    "sandbox": Case(
        source=ROOT, stack="sandbox", resources=23, remade=4, updated=1, prepare=render_to_files
    ),
    "ten-lines": example("ten-lines", resources=10, remade=2),
    "kthena-templates": example("kthena-templates", resources=3, updated=1),
    "kthena-production": example("kthena-production", resources=6, updated=1),
    "leader-worker-set": example("leader-worker-set", resources=5, updated=1),
    "model-booster": example("model-booster", resources=4, updated=1),
    "model-infer": example("model-infer", resources=5, updated=1),
    "kaito-preset": example("kaito-preset", resources=8, replaced=1),
    "kserve": example("kserve", resources=5, updated=1),
    "prefill-decode": example("prefill-decode", resources=24, remade=7),
    "hypernodes-and-queue": example("hypernodes-and-queue", resources=15, remade=2),
    "single-role": example("single-role", resources=12, remade=3),
    "secret-token": example("secret-token", resources=10, remade=1),
}
