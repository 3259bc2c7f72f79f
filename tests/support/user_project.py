"""The files of a user's project: a program, its settings, and what it installs."""

from pathlib import Path

PROGRAM = """\
import pulumi
from kthena_components import ModelServing

config = pulumi.Config()
engine = {
    "kind": "vllm",
    "image": config.get("image") or "vllm/vllm-openai:v0.33.0",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "parallelism": {"pipeline": config.require_int("pipeline")},
}
pods = {"name": "serve", "worker_replicas": 1, "resources": {"gpus_per_pod": 1}}
ModelServing("chat", {"roles": [{**pods, "engine": engine}]})
"""
PROJECT = """\
name: mine
runtime:
  name: python
  options: {toolchain: pip, virtualenv: .venv}
"""
SETTINGS = """\
config:
  kubernetes:renderYamlToDirectory: rendered
  mine:pipeline: "2"
"""
FILES = {
    "Pulumi.yaml": PROJECT,
    "__main__.py": PROGRAM,
    "Pulumi.prod.yaml": SETTINGS,
    "requirements.txt": "kthena-components[policy]\n",
    ".gitignore": "/.venv\n/rendered/\n__pycache__/\n",
}
STACK = "Pulumi.prod.yaml"


def files_of(wheel: Path, below: str = "") -> dict[str, str]:
    """Give the files of a project that installs a wheel, in a folder of its repository."""
    listed = {"requirements.txt": f"kthena-components[policy] @ {wheel.as_uri()}\n"}
    return {f"{below}{name}": text for name, text in {**FILES, **listed}.items()}
