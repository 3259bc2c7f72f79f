"""Documentation of findings that are not made by rule functions of the catalogue.

They come from readers of input and from backends, in modules that this package may not import.
The findings of the stack program are in stack_findings.py. A test checks that each name occurs in
the sources, and that none is missing here.
"""

from collections.abc import Mapping

MANIFEST_DOCS: Mapping[str, str] = {
    "hypernode-members": """A HyperNode's members are of one kind: nodes, labels or children.

Pass: nodes gpu-1 and gpu-2.
Fail: nodes and children; no members.
Level: mandatory for the component HyperNodeTopology, advisory for a manifest.
Source: Volcano v1.14 pkg/webhooks/admission/hypernodes/validate.
Code: kthena_components/systems/volcano/view.py.""",
}
"""Findings while manifests are read."""

FOLDER_DOCS: Mapping[str, str] = {
    "partial-object": """An object in a folder is complete, and not a patch or a part of a template.

Patches that a kustomization names are not read as objects. Other objects in a folder are not
checked if no pod template has containers, if an image is {}, if a workload has no selector and a
container has no image, or if a field begins with $, as orders to other programs do.

Pass: a Deployment with a selector and containers.
Fail: a Deployment whose pod template has a nodeSelector and no containers.
Level: not checked.
Source: kubernetes pkg/apis/apps/validation/validation.go and pkg/apis/core/validation/validation.go
(required fields).
Code: kthena_components/checker/unread_kinds_and_parts.py.""",
}
"""Findings about objects that the user did not name, but only their folder."""

INPUT_DOCS: Mapping[str, str] = {
    "unknown-field": """Every field exists, at its place.

Pass: worker_replicas 1.
Fail: workers 1, which is not a field of a role.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "required": """Every field without a default is given.

Pass: an engine with kind, image and model.
Fail: an engine without model.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "type": """A value has the field's type: a number is not a text, and a text is not a number.

Pass: replicas 2.
Fail: replicas "2"; a map with a key that is not a text.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "range": """A number is within the bounds of its field.

Pass: replicas 0.
Fail: replicas -1.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "length": """A text or a list has a valid length: neither too short nor too long.

Pass: one role.
Fail: no roles at all.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "pattern": """A text has the format that its field requires, such as the format of a name.

Pass: name chat-8b; a Secret's key HF_TOKEN.
Fail: name Chat_8B; a Secret's key "hf token".
Level: mandatory.
Source: Kubernetes, Object Names and IDs.
Code: kthena_components/core/spec/parse.py.""",
    "value": """A value is valid for its field.

Pass: max_unavailable 25%.
Fail: max_unavailable 1.5.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "known-value": """A word is one of the values that its field accepts.

Pass: recovery_policy RoleRecreate.
Fail: recovery_policy Recreate.
Level: mandatory.
Code: kthena_components/core/spec/parse.py.""",
    "known-when-planned": """Values that determine the number of resources are known in the program.

Counts, names and positions in a tree cannot be Outputs: Pulumi must know in a preview which
resources there will be.

Pass: replicas 2; an image that is an Output.
Fail: replicas that is an Output.
Level: mandatory.
Source: Pulumi documentation, Inputs and outputs.
Code: kthena_components/core/spec/parse.py.""",
    "known-backend": """The backend exists.

Pass: backend kthena.
Fail: backend slurm.
Level: mandatory.
Code: kthena_components/compiler/compile.py.""",
    "backend-loss": """The backend supports all fields that are set; none is dropped silently.

A StatefulSet only recreates the failed pod, and it cannot surge; older versions of Kthena lack
fields of newer ones; a LeaderWorkerSet places and recreates single engines; MatrixInfer ignores
maxSurge and maxUnavailable; KAITO decides how a preset is split; an
InferenceService of KServe has one role, and its pods are placed one by one; Kthena writes the pods
of a ModelBooster.

Pass: recovery_policy RoleRecreate with backend kthena.
Fail: recovery_policy RoleRecreate with backend native; max_surge with backend
kthena; partition 50% with Kthena 0.3; a network_topology with backend lws or kserve; max_surge 1
with backend matrixinfer; tensor 4 for a preset that KAITO starts with tensor 8; an overlay with
backend booster.
Level: mandatory.
Source: Kubernetes documentation, StatefulSets; the CRDs of Kthena v0.1.0 to v1.0.0;
kubernetes-sigs/lws v0.9.0 pkg/schedulerprovider and pkg/webhooks; volcano-sh/kthena
e4fb6663 pkg/infer-controller; kaito-project/kaito v0.11.0 pkg/workspace; kserve
v0.20.0 pkg/controller/v1beta1/inferenceservice.
Code: kthena_components/core/plan/limits.py.""",
    "booster-defaults": """A serving with backend booster gets pods of Kthena's templates.

They lack most production defaults of the other backends, and no field asks for them. A change of
its replicas recreates all pods, because a label of the pods is a hash of the whole backend.

Pass: backend kthena.
Fail: backend booster.
Level: advisory.
Source: Kthena v1.0.0 pkg/model-booster-controller/convert/templates and
convert/model_serving.go.
Code: kthena_components/systems/booster/limits.py.""",
    "backend-options": """The options of a backend fit the serving, and engines can start with them.

Pass: backend lws, subgroups of 2 pods in engines of 4.
Fail: subgroups of 3 pods in engines of 5; exclusive_topology in a gang, because
LWS creates the workers only after Volcano has scheduled their leader alone; backend kaito without
nodes; backend kserve without storage_uri for an engine of several pods.
Level: mandatory.
Source: kubernetes-sigs/lws v0.9.0 pkg/webhooks/leaderworkerset_webhook.go and
pkg/controllers/pod_controller.go; kaito-project/kaito v0.11.0 api/v1beta1; kserve v0.20.0
pkg/apis/serving/v1beta1.
Code: kthena_components/core/plan/limits.py.""",
    "monitoring-metrics": """Prometheus gets the metrics of each engine of a monitored serving.

SGLang has metrics with --enable-metrics only; a role with an engine gets the option. Prometheus
finds a pod by a port that a container declares, and reads it over plain HTTP. Of other programs no
metrics are known, so their roles are not scraped.

Pass: a template that starts SGLang with --enable-metrics and --port 8080, and declares 8080.
Fail: SGLang without --enable-metrics; vLLM with --disable-log-stats or --ssl-keyfile; a --port that
no container declares.
Level: mandatory; advisory for a role without an engine beside others.
Source: vLLM v0.33.0 vllm/v1/engine/async_llm.py; SGLang v0.5.23
sglang/srt/entrypoints/http_server.py; prometheus-operator v0.93.0 pkg/prometheus/promcfg.go.
Code: kthena_components/systems/prometheus/scrapes_and_panels.py.""",
    "name-unique": """No role has the name that the native backend generates for another's replica.

Pass: roles serve, with 2 replicas, and prefill.
Fail: roles serve, with 2 replicas, and serve-1.
Level: mandatory.
Code: kthena_components/systems/native/emit.py.""",
    "requests-mirrored": """Limits come with requests; missing ones are added and reported.

Pass: limits nvidia.com/gpu 8, requests nvidia.com/gpu 8.
Fail: limits nvidia.com/gpu 8 and no requests.
Level: advisory.
Source: Volcano v1.14 pkg/scheduler/api/pod_info.go GetPodResourceRequest.
Code: kthena_components/core/plan/build.py.""",
}
"""Findings about the input of components, before there is a plan or by a backend."""
