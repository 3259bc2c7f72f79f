"""Start scripts as people write them: read here, and run by a real shell with stub engines.

Each case of start_scripts/ says what is read of it: the words that are stated, or how much is not
known. A real shell then hands an engine exactly these words, in each of the pods.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.shell_runs import Ran, Read, faults, install, read, recorded, run, stated
from tests.support.shell_scripts import Drawn

PARTLY, NOT_READ = "partly", "not read"
PROGRAMS = ("curl", "hostname", "nvidia-smi", "ray", "sleep")
"""Programs of an image: each writes a number, and succeeds."""

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A script, the pods that run it, and what is read of it."""

    name: str
    read: Any
    """The engine's arguments, PARTLY or NOT_READ."""
    bash: str = ""
    sh: str = ""
    words: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    pods: tuple[dict[str, str], ...] = ({},)
    """Variables that only the pod has."""

    def __str__(self) -> str:
        return self.name

    @property
    def shell(self) -> str:
        return "bash" if self.bash else "sh"

    def drawn(self, folder: Path) -> Drawn:
        def placed(text: str) -> str:
            return text.replace("<folder>", str(folder))

        return Drawn(
            shell=self.shell,
            text=placed(self.bash or self.sh),
            words=self.words,
            files={name: placed(text) for name, text in self.files.items()},
            env={name: placed(text) for name, text in self.env.items()},
            hidden="",
            late="",
            fails=False,
            known=False,
        )


FILES = sorted((Path(__file__).parent / "start_scripts").glob("*.yaml"))
CASES = [Case(**one) for path in FILES for one in yaml.safe_load(path.read_text())]


def outcome(found: Read) -> Any:
    words = stated(found)
    if words is not None:
        return list(words[2:] if words[0] == "vllm" else words[3:])
    return NOT_READ if found.unread or not found.started else PARTLY


def runs(case: Case, drawn: Drawn, folder: Path) -> list[Ran]:
    stubs = install(folder)
    for name in PROGRAMS:
        (stubs / name).write_text("#!/bin/sh\necho 3\n")
        (stubs / name).chmod(0o755)
    return [run(drawn, [case.shell], folder / "run", stubs, pod) for pod in case.pods]


def test_each_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_read_is_what_the_engine_is_given(case: Case, tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    drawn = case.drawn(mounted)
    for name, text in drawn.files.items():
        (mounted / name).write_text(text)
        (mounted / name).chmod(0o755)
    hidden = {name for pod in case.pods for name in pod if not name.startswith("LWS_")}
    with recorded():
        found = read(drawn, case.shell, str(mounted), hidden)

    assert outcome(found) == case.read
    for ran in runs(case, drawn, tmp_path):
        assert ran.received, ran
        assert case.read == NOT_READ or faults(drawn, found, ran) == []
