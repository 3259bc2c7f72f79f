"""Writes the schema with which an organization publishes the package in its registry.

`python -m toolchain.registry_schema https://github.com/acme/kthena_components --logo URL`. The
committed schema names no address, because each organization publishes from its own.
"""

import argparse
import json
import sys
from typing import Any
from urllib.parse import urlsplit

from kthena_components.languages import read_schema


def publishable(repository: str, logo: str = "") -> dict[str, Any]:
    """Return the schema with what a page of a registry shows.

    Args:
        repository: Address of the repository; the owner in it is the publisher.
        logo: Address of a picture. The generator of .NET fetches it, so it must exist.

    Raises:
        ValueError: The address has no owner.
    """
    parts = urlsplit(repository)
    owner, _, name = parts.path.strip("/").rpartition("/")
    if parts.scheme not in {"http", "https"} or not owner or not name:
        raise ValueError(
            f"'{repository}' is not an address of a repository: write one such as "
            "https://github.com/acme/kthena_components"
        )
    address = repository.rstrip("/").removesuffix(".git")
    about = {"homepage": address, "repository": address, "publisher": owner.rpartition("/")[2]}
    return {**read_schema(), **about, **({"logoUrl": logo} if logo else {})}


def main(arguments: list[str] | None = None) -> int:
    """Print the schema, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.registry_schema")
    parser.add_argument("repository", help="such as https://github.com/acme/kthena_components")
    parser.add_argument("--logo", default="", help="address of a picture")
    asked = parser.parse_args(arguments)
    try:
        schema = publishable(asked.repository, asked.logo)
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    json.dump(schema, sys.stdout, indent=2, ensure_ascii=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
