"""Start the policy pack: Pulumi runs this folder. What the policies do is in pack.py."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_policy import PolicyPack

if TYPE_CHECKING:
    from policies.pack import POLICIES
else:
    # The folder may stand anywhere and have any name: its files are found by place. Beside a
    # package it judges by that one, whatever is installed: ci/review hands over both of a base.
    folder = Path(__file__).resolve().parent
    beside = [folder.parent] if (folder.parent / "kthena_components" / "core").is_dir() else []
    sys.path[:0] = map(str, (folder, *beside))
    from pack import POLICIES

if __name__ == "__main__":
    PolicyPack(name="kthena-components", policies=POLICIES)
