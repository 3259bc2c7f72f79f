"""Names of container images, and the version that the tag of vLLM's own image states."""

import re
from dataclasses import dataclass

LATEST = "latest"
"""The tag that a name without one has."""
_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")
_SHOWN = 160
_VLLM = "vllm/vllm-openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The name of an image, taken apart."""

    repository: str
    """Registry and name, without Docker Hub's host: it is the default."""
    tag: str | None
    digest: str | None

    @property
    def pinned(self) -> bool:
        """Whether the name states which build it is: a digest, or a tag other than latest."""
        return self.digest is not None or self.tag not in {None, LATEST}

    @property
    def is_vllm(self) -> bool:
        """Whether it is the image that the vLLM project builds, from whatever registry."""
        return self.repository == _VLLM or self.repository.endswith(f"/{_VLLM}")

    @property
    def vllm_version(self) -> tuple[int, int] | None:
        """Major and minor version of vLLM; None when the name does not state them.

        The tag of an image that somebody else builds counts something else.
        """
        found = _VERSION.match(self.tag or "") if self.is_vllm else None
        return (int(found[1]), int(found[2])) if found else None

    def same_build(self, other: "Image") -> bool:
        """Tell whether two names stand for one build: equal digests say so, whatever the rest."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        mine, theirs = self.tag or LATEST, other.tag or LATEST
        same = (self.repository, mine) == (other.repository, theirs)
        return same and self.digest == other.digest


def read_image(name: str) -> Image:
    """Take the name of an image apart: `registry:5000/name:tag@sha256:…`."""
    rest, _, digest = name.strip().partition("@")
    head, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{head}{slash}{last}"
    for host in _HUB:
        repository = repository.removeprefix(host)
    return Image(repository=repository, tag=tag or None, digest=digest or None)


def shown_image(name: str) -> str:
    """Write the name of an image for a message, shortened when it is absurdly long."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
