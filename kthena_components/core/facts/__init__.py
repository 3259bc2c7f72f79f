"""Facts about pods and engines, read from manifests."""
