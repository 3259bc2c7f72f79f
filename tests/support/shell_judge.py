"""Hold the reading of drawn scripts against real shells: `python -m tests.support.shell_judge`.

What is stated must be what the engine was given. Everything else must be said to be not known, and
of the scripts in which nothing is hidden most must be read: a reader that knows nothing fails.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.support.shell_runs import Ran, Read, faults, install, read, recorded, run, stated
from tests.support.shell_scripts import Drawn, draw_script

LEAST_READ = 0.8
"""Least share of the scripts without anything hidden that must be read; 0.9 is measured."""
SHELLS: dict[str, Sequence[Sequence[str]]] = {
    "bash": (["bash"],),
    "sh": (["dash"], ["bash", "--posix"]),
}
"""What may stand behind the name of a shell."""


@dataclass
class Told:
    """What became of some scripts."""

    scripts: int = 0
    known: int = 0
    """Scripts in which nothing is hidden."""
    read: int = 0
    """Those of them of which one command line is stated, or rightly none."""
    stated: int = 0
    """Scripts of which one command line is stated, something hidden in them or not."""
    starts: int = 0
    """Starts of engines that real shells made."""
    faults: list[str] = field(default_factory=list)


def judge(seed: str, first: int, count: int) -> Told:
    """Draw scripts, read them, run them, and compare."""
    told = Told()
    with tempfile.TemporaryDirectory(prefix="kthena-shell-") as made, recorded():
        base = Path(made)
        stubs, mounted = install(base), base / "mounted"
        for number in range(first, first + count):
            drawn = draw_script(f"{seed}-{number}", str(mounted))
            _mount(drawn, mounted)
            found = read(drawn, drawn.shell, str(mounted))
            told.scripts += 1
            told.stated += stated(found) is not None
            told.known += drawn.known
            none = not found.started and not found.unread
            told.read += drawn.known and (none or stated(found) is not None)
            for shell in SHELLS[drawn.shell]:
                ran = run(drawn, shell, base / "run", stubs)
                told.starts += len(ran.received)
                wrong = faults(drawn, found, ran)
                if wrong:
                    what = f"script {number} of seed {seed}: {'; '.join(wrong)}"
                    told.faults.append(f"{what}\n{_shown(drawn, found, ran)}")
    return told


def _mount(drawn: Drawn, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in drawn.files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def _shown(drawn: Drawn, found: Read, ran: Ran) -> str:
    files = (f"-- {name}\n{text}" for name, text in drawn.files.items())
    hidden = f"U={drawn.hidden!r}, WORKER_INDEX={drawn.late}, check fails: {drawn.fails}"
    given = f"{drawn.shell}, {drawn.words}, {drawn.env}, {hidden}"
    words = [facts.options["words"] for facts in found.started]
    read_so = f"read: {words}, sure: {found.sure}"
    return "\n".join(
        [given, drawn.text, *files, read_so, f"status {ran.status}: {ran.errors[:300]}"]
    )


def main(arguments: Sequence[str]) -> int:
    """Judge some scripts, and write what became of them as JSON."""
    seed, first, count = arguments
    sys.stdout.write(json.dumps(asdict(judge(seed, int(first), int(count)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
