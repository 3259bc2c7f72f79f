"""Start the policy pack. The rules are in kthena_components.core.checks."""

from pack import POLICIES
from pulumi_policy import PolicyPack

PolicyPack(name="kthena-components", policies=POLICIES)
