"""Lists what Terraform deploys with Helm. Its values are expressions, which only it evaluates."""

import re

from kthena_components.reading.releases.model import Outside, Place, Statement
from kthena_components.reading.releases.repository import Repository

_RELEASE = re.compile(r'^[ \t]*resource[ \t]+"helm_release"[ \t]+"([^"\n]+)"', re.MULTILINE)
_WHY = "only Terraform evaluates its values"


def terraform(text: str, place: Place, _repository: Repository) -> list[Statement]:
    """List the releases of Helm in a file of Terraform."""
    return [
        Outside(
            place=Place(file=place.file, what=f"helm_release {name}", boundary=place.boundary),
            why=_WHY,
        )
        for name in _RELEASE.findall(text)
    ]
