"""Starts the policy pack when Pulumi runs this folder. The policies are in pack.py."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_policy import PolicyPack

if TYPE_CHECKING:
    from policies.pack import POLICIES
else:
    # The folder can have any place and name, so its files are found by path. A package beside it
    # takes precedence over an installed one: ci/review passes both from the base of a branch.
    folder = Path(__file__).resolve().parent
    beside = [folder.parent] if (folder.parent / "kthena_components" / "core").is_dir() else []
    sys.path[:0] = map(str, (folder, *beside))
    from pack import POLICIES

if __name__ == "__main__":
    PolicyPack(name="kthena-components", policies=POLICIES)
