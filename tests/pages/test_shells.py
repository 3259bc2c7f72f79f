"""The shells of the pages are those of a user, also when `make` runs the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os
from pathlib import Path
from tests.support.shells import Bash
with Bash(Path.cwd(), os.environ) as bash:
    print(bash.run("make inner")[1], end="")
"""
MAKEFILE = """
outer:
\t@$(PYTHON) -c "$$PROGRAM"
inner:
\t@echo "words: $(ARGS)"
"""


def test_the_words_of_make_reach_no_make_of_a_page(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    ran = subprocess.run(
        ["make", "outer", "ARGS=-n2", f"PYTHON={sys.executable}"],
        cwd=tmp_path,
        env={**os.environ, "PROGRAM": PROGRAM, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "words: \n"
