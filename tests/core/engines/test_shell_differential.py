"""Drawn scripts, read here and run by real shells with an engine that notes what it is given.

`make conformance ARGS=shell` takes 10,000 of them; here are a few. The seed is another one in each
run, and a failure shows it: KTHENA_SEED=… runs it again.
"""

import os
import random
import shutil

import pytest

from tests.support.shell_judge import LEAST_READ, judge

SCRIPTS = 500


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("dash")), reason="there is no bash, or no dash"
)
def test_what_is_read_of_a_script_is_what_a_real_shell_starts() -> None:
    seed = os.environ.get("KTHENA_SEED", str(random.SystemRandom().randrange(10**9)))
    told = judge(seed, 0, SCRIPTS)

    assert told.faults == [], "\n\n".join(told.faults)
    assert told.starts > SCRIPTS // 2, f"KTHENA_SEED={seed}: {told}"
    assert told.read >= LEAST_READ * told.known, f"KTHENA_SEED={seed}: {told}"
