"""vLLM's KV connectors: the releases that have each of them.

Source: vllm/distributed/kv_transfer/kv_connector/factory.py of every published release, the names
that it registers. No source of 0.15.0 and 0.15.1 is published: they count as their neighbours.
"""

from collections.abc import Mapping

from kthena_components.core.values.images import Version, write_version

_Span = tuple[Version, Version | None]
CONNECTORS: Mapping[str, tuple[_Span, ...]] = {
    "PyNcclConnector": (((0, 6, 5), (0, 10, 1)),),
    "MooncakeConnector": (((0, 6, 5), (0, 10, 1)), ((0, 13, 0), None)),
    "LMCacheConnector": (((0, 8, 0), (0, 10, 1)),),
    "MooncakeStoreConnector": (((0, 8, 3), (0, 10, 1)), ((0, 21, 0), None)),
    "SharedStorageConnector": (((0, 8, 5), (0, 13, 0)),),
    "LMCacheConnectorV1": (((0, 8, 5), None),),
    "NixlConnector": (((0, 9, 0), None),),
    "MultiConnector": (((0, 9, 0), None),),
    "P2pNcclConnector": (((0, 9, 2), (0, 24, 0)),),
    "OffloadingConnector": (((0, 11, 0), None),),
    "LMCacheMPConnector": (((0, 11, 1), None),),
    "DecodeBenchConnector": (((0, 11, 1), None),),
    "ExampleConnector": (((0, 13, 0), None),),
    "MoRIIOConnector": (((0, 14, 0), None),),
    "ExampleHiddenStatesConnector": (((0, 17, 0), None),),
    "FlexKVConnectorV1": (((0, 18, 0), None),),
    "SimpleCPUOffloadConnector": (((0, 19, 0), None),),
    "HF3FSKVConnector": (((0, 20, 0), None),),
    "NixlPullConnector": (((0, 24, 0), None),),
    "NixlPushConnector": (((0, 24, 0), None),),
    "HiSparseConnector": (((0, 30, 0), None),),
}
"""For each connector the first release with it, and the first that no longer has it."""


def has_connector(name: str, release: Version) -> bool:
    """Return whether a release has a connector."""
    spans = CONNECTORS.get(name, ())
    return any(first <= release and (gone is None or release < gone) for first, gone in spans)


def releases_with(name: str) -> str:
    """Write which releases have a known connector: `0.6.5 to before 0.10.1, and since 0.13.0`."""
    return ", and ".join(
        f"since {write_version(first)}"
        if gone is None
        else f"from {write_version(first)} to before {write_version(gone)}"
        for first, gone in CONNECTORS[name]
    )
