"""The release by which a command line is read, and whether it is certain."""

from dataclasses import dataclass

from kthena_components.core.values.images import Version, write_version

TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release by whose options and rules a command line is checked."""

    engine: str
    """vllm, sglang or trtllm."""
    version: Version
    """The release that is assumed: the image's, or else the newest known."""
    text: str = ""
    """The release as its project writes it: 0.8.5.post1. Empty: the numbers joined by dots."""
    because: str = ""
    """Why it may be another one: "the image states no release of vLLM". Empty: certain."""

    @property
    def sure(self) -> bool:
        """Whether the image states this very release."""
        return not self.because

    @property
    def title(self) -> str:
        """The engine and its release: vLLM 0.10.1."""
        text = self.text or write_version(self.version)
        return f"{TITLES.get(self.engine, self.engine)} {text}"

    @property
    def note(self) -> str:
        """What to add to a finding that depends on an uncertain release. Empty if it is certain."""
        return f" (checked against {self.title}, because {self.because})" if self.because else ""
