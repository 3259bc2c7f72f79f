"""From a plan to manifests, and from manifests to facts. One file a system; pure."""
