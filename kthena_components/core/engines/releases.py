"""Which release of an engine a command line is read by, and how sure that is."""

from dataclasses import dataclass

from kthena_components.core.values.images import Version, write_version

TITLES = {"vllm": "vLLM", "sglang": "SGLang"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release whose options and rules a command line is held against."""

    engine: str
    """vllm or sglang."""
    version: Version
    """The release that is used: what the image states, or else the newest that is known."""
    text: str = ""
    """The release as its project writes it: 0.8.5.post1. Empty: as the numbers."""
    because: str = ""
    """Why it may be another one: "the image states no release of vLLM". Empty: it is stated."""

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
        """What to add to a finding that is not sure of the release. Empty when it is."""
        return f" (judged by {self.title}, because {self.because})" if self.because else ""
