"""The release of the Kubernetes provider: the installed pulumi-kubernetes states it."""

from functools import cache
from importlib.metadata import version

import pulumi

TESTED = "4.25"
"""The minor release with which the conformance tests ran. The waits, the field managers and the
rendering are the provider's, and other releases may change them."""
REQUIREMENT = f"pulumi-kubernetes=={TESTED}.*"
"""For pip: the tested release. pyproject.toml allows others, whose tests need no cluster."""


@cache
def provider_version() -> str:
    """Return the version of the Kubernetes provider, which the installed package states."""
    return version("pulumi-kubernetes")


@cache
def warn_of_untested() -> None:
    """Warn once in a program if pulumi-kubernetes, and so the provider, is an untested release."""
    installed = provider_version()
    if installed.startswith(f"{TESTED}."):
        return
    pulumi.log.warn(
        f"pulumi-kubernetes {installed} is installed, so Pulumi starts the provider {installed}. "
        f"What kthena-components registers is tested with it, what a cluster makes of that only "
        f"with {TESTED}; docs/own-program.md says what differs. For the tested release: "
        f"pip install '{REQUIREMENT}'"
    )
