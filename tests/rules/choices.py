"""Rules whose remedies have no fix, by the reason, and fixes that uncover another mistake."""

from typing import Final

CHOICES: Final[dict[str, set[str]]] = {
    "the user chooses a name, a string or a number": {
        *("cache-source", "config-map-key-exists", "config-map-values", "dynamo-name-length"),
        "gang-minimum-stated",
        *("gang-task-exists", "grove-links", "grove-names", "hypernode-node-name"),
        *("hypernode-tier-name", "kaito-access-secret", "kaito-adapters", "kaito-name"),
        *("kaito-selector", "kserve-confidential", "kserve-llm-adapters", "kthena-generated-name"),
        *("kthena-model-server", "kthena-role-name", "kthena-role-names-unique", "length"),
        *("model-route-has-servers", "model-server-selects-pods", "name-fits", "name-unique"),
        *("pattern", "queue-parent", "queue-weight", "ray-deletion", "ray-name"),
        *("ray-network-policy", "ray-runtime-env", "role-names-unique", "service-selects-pods"),
        "router-selects-pods",
        *("subgroup-match-label-keys", "subgroup-names-unique", "value", "required"),
        *("engines-apart", "engine-variable-known", "library-variable-known"),
        *("leader-address", "leader-pod-exists", "leader-ports-agree", "first-pod-named"),
        "first-pod-selected",
        *("ray-start-order", "ports-distinct", "container-outlives-server"),
        "disaggregated-ports",
        *("adapter-mounted", "selector-of-serving"),
        *("probe-covers-loading", "resource-claim-used"),
    },
    "one of several parts goes, and only the user knows which": {
        *("grove-scaling-groups", "hypernode-node-twice", "job-parts"),
        *("hypernode-two-parents", "hypernode-cycle", "kthena-role-count", "object-twice"),
        *("queue-cycle", "ray-cluster-upgrade", "ray-stated-once", "rbg-dependencies"),
        *("rbg-templates", "template-or-engine", "topology-one-cap", "kaito-roles"),
    },
    "the user chooses an image, a release or a model": {
        *("draft-tensor", "engine-option-keys", "engine-option-word", "ray-engine-kwargs"),
        *("booster-image", "container-image", "engine-image", "image-gpu-vendor", "kthena-image"),
        *("kv-transfer-supported", "pp-with-ray", "ray-in-image"),
        *("ray-over-pods", "hf-config-shape", "model-offline", "model-stated"),
        "architecture-in-release",
    },
    "the user chooses hardware, or how many pods and ranks there are": {
        *("gang-fits-hypernode", "gpu-budget", "kaito-parallelism", "kserve-node-arithmetic"),
        *(
            "gpu-named-larger",
            "memory-weights-fit",
            "mpi-ranks",
            "offload-within-memory",
            "ray-cluster-gpus",
            "ray-serve-gpus",
            "ray-serve-placement",
        ),
        *(
            "architecture-on-gpu",
            "pod-fits-node",
            "pods-apart-fit",
            "pods-joined",
            "quantization-groups",
            "subgroup-has-pods",
            "one-gpu-vendor",
            "surge-needs-spare-gpus",
            "whole-gpus",
            "kserve-one-gpu-type",
        ),
    },
    "another object, a file or the cluster changes, and not the object with the finding": {
        *("engine-config-file", "gang-covers-engine", "headless-service", "model-route-adapters"),
        "route-reference-grant",
        *("hf-token-from-secret", "hypernode-leaf-tiers", "hypernode-members"),
        *("hypernode-tier-order", "kaito-runtime", "queue-exists", "rwx-for-shared-model"),
        *("service-named-vllm", "service-one-model", "kv-halves-complete"),
    },
    "it takes several updates, one after the other": {
        *("gang-topology-only-change", "kthena-partition-scaling", "lws-lower-then-raise"),
        "lws-subgroups-fixed",
    },
    "words of a script, a string in a ConfigMap or an address, which no option or field holds": {
        *("dynamo-launch", "master-address", "ray-cluster-size-equals-group"),
        *("ray-script-in-image", "kaito-config", "probe-covers-sleep", "wait-ends"),
        "kthena-entry-names",
        "ray-head-address",
    },
    "the user designs the part that is missing": {
        *(
            "autoscaler-requests",
            "engine-only-field",
            "gang-requests",
            "overlay-container",
            "overlay-counted",
        ),
        *("production-availability", "production-cache", "production-labels"),
        *("production-lifecycle", "production-resources", "production-security"),
        *("template-containers", "counted-flag", "grace-period"),
    },
    "it only says what is not checked or what is added": {
        *("kind-read", "known-when-planned", "requests-mirrored")
    },
}
"""No remedy of these rules names a single right value, for the reason of their group."""

UNCOVERS: Final[dict[tuple[str, str], str]] = {
    ("init-container-ends", "ports-distinct"): "both servers have the default port",
    ("pod-ranks", "metadata-variables"): "it says to run the pods as a StatefulSet first",
    ("size-variables", "headless-workers"): "the rank is known only then",
    ("executor-stated", "pods-joined"): "a script of the user must start Ray, too",
    ("gpu-agrees", "image-gpu-vendor"): "the image is for the other vendor, too",
    ("gpu-resource", "image-gpu-vendor"): "the image is for another vendor",
    ("resource-claims", "image-gpu-vendor"): "the image is for the other vendor, too",
    ("image-pinned", "kthena-image"): "the image of the entry is reported there, too",
    ("kaito-capacity", "kaito-capacity"): "a Workspace has tuning or a preset, and here both",
    ("pod-ranks", "headless-workers"): "one pod of the template has the first rank only then",
    ("pod-ranks", "leader-pod-exists"): "a pod looks for the first rank only then",
    ("probe-port", "probe-covers-loading"): "its time counts only where the engine listens",
    ("subgroup-minimum", "gang-has-pods"): "the subgroups need more pods than there are",
    ("topology-tier-exists", "gang-fits-hypernode"): "the HyperNodes have room for fewer pods",
    ("vllm-stack-ignored", "world-size-equals-gpus"): "the chart reads the size only then",
    ("world-size-equals-gpus", "visible-gpus"): "a variable states the GPUs a second time",
}
"""A rule's fix, the rule that then reports the same field, and why that is not a wrong way."""
