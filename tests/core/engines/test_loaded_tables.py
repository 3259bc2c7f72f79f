"""A check of a folder opens the tables of the engines that it sees, and no others."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

WATCHED = """
import sys, json
from pathlib import Path
opened = set()
def note(event, args):
    path = Path(args[0]) if event == "open" and isinstance(args[0], str) else None
    if path is not None and path.suffix == ".json" and path.parent.parent.name == "engines":
        opened.add(path.stem)
sys.addaudithook(note)
from kthena_components.cli.main import main
main(["check", sys.argv[1]])
print(json.dumps(sorted(opened)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("commands", "tables"),
    [
        (["nginx -g daemon", "python3 app.py --tensor-parallel-size 8"], []),
        (["vllm serve M -tp 2", "nginx"], ["vllm"]),
        (["sglang serve --model-path M", "trtllm-serve M"], ["sglang", "trtllm"]),
    ],
)
def test_only_the_tables_of_engines_that_are_seen_are_opened(
    commands: list[str], tables: list[str], tmp_path: Path
) -> None:
    for number, command in enumerate(commands):
        container = {"name": "c", "image": "registry.example.com/i:1", "command": command.split()}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"}}
        text = yaml.safe_dump({**pod, "spec": {"containers": [container]}})
        (tmp_path / f"p{number}.yaml").write_text(text)
    run = [sys.executable, "-c", WATCHED, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)

    assert json.loads(done.stderr.splitlines()[-1]) == tables
