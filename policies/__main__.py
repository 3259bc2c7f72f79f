"""Starts the policy pack when Pulumi runs this folder. The policies are in the package."""

import gc
import sys
from pathlib import Path

# What is loaded stays, and what a check makes is freed at once: the collector hardly finds any.
gc.set_threshold(50_000, 20, 20)
# A package beside this folder takes precedence over an installed one: a review passes both from
# the base of a branch.
beside = Path(__file__).resolve().parent.parent
if (beside / "kthena_components" / "core").is_dir():
    sys.path.insert(0, str(beside))

from pulumi_policy import PolicyPack

from kthena_components.policies.pack import POLICIES

if __name__ == "__main__":
    gc.freeze()
    PolicyPack(name="kthena-components", policies=POLICIES)
