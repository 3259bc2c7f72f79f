"""Engines by their command line and the release of their image, for rules about how they start."""

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.findings import run_rule as run
from kthena_components.core.rules.registry import Check
from kthena_components.core.values.unknown import MaybeInt, Unknown
from tests.support.specs import Args, changed, gpu_template

NOBODY = Unknown("nobody says")
IMAGES = {"vllm": "vllm/vllm-openai", "sglang": "lmsysorg/sglang"}
LAUNCH = {"vllm": "vllm serve", "sglang": "python3 -m sglang.launch_server --model-path"}


def pod(command: str, image: str, gpus: int = 8) -> Args:
    """Give a template of a pod that starts a command in an image."""
    return changed(gpu_template(command, gpus), {"spec.containers[0].image": image})


def serving(command: str, image: str, pods: MaybeInt = NOBODY, gpus: int = 8) -> ServingFacts:
    """Give a serving of one engine."""
    entry = read_pod(pod(command, image, gpus), "t", command_path="here")
    engine = EngineFacts(path="e", name="e", pods=pods, replicas=1, entry=entry, worker=None)
    return ServingFacts(path="", name="s", engines=(engine,))


def checked(
    check: Check, release: str, line: str, pods: MaybeInt = NOBODY, gpus: int = 8
) -> list[Finding]:
    """Judge `vllm 0.33.0` that starts with a model and flags; with no release, any image."""
    engine, _, version = release.partition(" ")
    image = f"{IMAGES[engine]}:v{version}" if version else f"registry.example.com/{engine}"
    return run(check, serving(f"{LAUNCH[engine]} {line}", image, pods, gpus))


def told(check: Check, release: str, line: str, pods: MaybeInt = NOBODY) -> list[str]:
    """Give what is said, without place, engine and rule."""
    texts = map(str, checked(check, release, line, pods))
    return [text.removeprefix("here: engine 'e' ").rpartition(". [")[0] for text in texts]


def levels(check: Check, release: str, line: str) -> list[str]:
    """Give the levels of what is said."""
    return [finding.level.value for finding in checked(check, release, line)]
