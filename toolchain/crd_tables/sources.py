"""Where each system publishes its CRDs, and from which release on they are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The CRDs of one system."""

    system: str
    """The package of the system, and where its table is written."""
    title: str
    """What users call it, before a release: `KServe` 0.20."""
    repository: str
    """Owner and name on GitHub."""
    folders: tuple[str, ...]
    """Where its CRDs stand or have stood, the newest place first."""
    files: tuple[str, ...]
    """The CRDs that are read, without `.yaml`."""
    first: str
    """The oldest minor release that is read."""
    previews: bool = False
    """Whether alphas and release candidates count, where their minor release is not out."""
    filled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kinds that a webhook of the project's writes anew before they are validated, and fields that
    it fills in. Being written in Go, it gives a string or a number that is missing as "" or 0."""
    module: str = ""
    """The Go module that is the repository, if the module proxy has its newest release."""
    unsigned: tuple[str, ...] = ()
    """Fields that are a uint32 in Go. Their CRD says `format: int32`, which is not checked."""


SOURCES: tuple[Source, ...] = (
    Source(
        system="volcano",
        title="Volcano",
        repository="volcano-sh/volcano",
        module="volcano.sh/volcano",
        folders=("config/crd/volcano/bases",),
        files=(
            "batch.volcano.sh_jobs",
            "scheduling.volcano.sh_podgroups",
            "scheduling.volcano.sh_queues",
            "topology.volcano.sh_hypernodes",
        ),
        first="1.14",
        # pkg/webhooks/admission/jobs/mutate/mutate_job.go, mutateSpec.
        filled={"Job": ()},
    ),
    Source(
        system="kthena",
        title="Kthena",
        repository="volcano-sh/kthena",
        module="github.com/volcano-sh/kthena",
        folders=("charts/kthena/charts/workload/crds", "charts/kthena/charts/networking/crds"),
        files=(
            "networking.serving.volcano.sh_modelroutes",
            "networking.serving.volcano.sh_modelservers",
            "workload.serving.volcano.sh_autoscalingpolicies",
            "workload.serving.volcano.sh_autoscalingpolicybindings",
            "workload.serving.volcano.sh_modelboosters",
            "workload.serving.volcano.sh_modelservings",
        ),
        first="0.1",
        # pkg/apis/networking/v1alpha1/modelroute_types.go, RateLimit.
        unsigned=("inputTokensPerUnit", "outputTokensPerUnit"),
    ),
    Source(
        system="lws",
        title="LWS",
        repository="kubernetes-sigs/lws",
        folders=("config/crd/bases",),
        files=(
            "disaggregatedset.x-k8s.io_disaggregatedsets",
            "leaderworkerset.x-k8s.io_leaderworkersets",
        ),
        first="0.6",
        # pkg/webhooks/leaderworkerset_webhook.go, Default. Go writes an empty NodeSelectorTerm.
        filled={"LeaderWorkerSet": ("subdomainPolicy", "preference")},
    ),
    Source(
        system="kserve",
        title="KServe",
        repository="kserve/kserve",
        module="github.com/kserve/kserve",
        folders=("config/crd/full", "config/crd/full/llmisvc"),
        files=(
            "serving.kserve.io_clusterservingruntimes",
            "serving.kserve.io_inferenceservices",
            "serving.kserve.io_llminferenceservices",
            "serving.kserve.io_servingruntimes",
        ),
        first="0.15",
        # pkg/apis/serving/v1beta1/inference_service_defaults.go, and since 0.19
        # pkg/webhook/admission/llminferenceservice/defaulter.go.
        filled={"InferenceService": (), "LLMInferenceService": ()},
    ),
    Source(
        system="kaito",
        title="KAITO",
        repository="kaito-project/kaito",
        folders=("config/crd/bases",),
        files=("kaito.sh_inferencesets", "kaito.sh_multiroleinferences", "kaito.sh_workspaces"),
        first="0.6",
    ),
    Source(
        system="ray",
        title="KubeRay",
        repository="ray-project/kuberay",
        folders=("ray-operator/config/crd/bases",),
        files=("ray.io_rayclusters", "ray.io_rayjobs", "ray.io_rayservices"),
        first="1.3",
    ),
    Source(
        system="rbg",
        title="RBG",
        repository="sgl-project/rbg",
        folders=("config/crd/bases",),
        files=("workloads.x-k8s.io_rolebasedgroups", "workloads.x-k8s.io_rolebasedgroupsets"),
        first="0.5",
        previews=True,
    ),
    Source(
        system="grove",
        title="Grove",
        repository="ai-dynamo/grove",
        folders=("operator/api/core/v1alpha1/crds",),
        files=("grove.io_podcliquesets",),
        first="0.1",
        previews=True,
        # operator/internal/webhook/admission/pcs/defaulting.
        filled={"PodCliqueSet": ()},
    ),
    Source(
        system="nim",
        title="NIM operator",
        repository="NVIDIA/k8s-nim-operator",
        folders=("config/crd/bases",),
        files=("apps.nvidia.com_nimpipelines", "apps.nvidia.com_nimservices"),
        first="2.0",
    ),
    Source(
        system="prometheus",
        title="Prometheus Operator",
        repository="prometheus-operator/prometheus-operator",
        module="github.com/prometheus-operator/prometheus-operator",
        folders=("example/prometheus-operator-crd",),
        files=("monitoring.coreos.com_podmonitors", "monitoring.coreos.com_prometheusrules"),
        # The first with portNumber, which a port without name needs.
        first="0.79",
    ),
    Source(
        system="kueue",
        title="Kueue",
        repository="kubernetes-sigs/kueue",
        module="sigs.k8s.io/kueue",
        folders=("config/components/crd/bases",),
        files=(
            "kueue.x-k8s.io_clusterqueues",
            "kueue.x-k8s.io_cohorts",
            "kueue.x-k8s.io_localqueues",
            "kueue.x-k8s.io_resourceflavors",
        ),
        first="0.10",
    ),
    Source(
        system="jobset",
        title="JobSet",
        repository="kubernetes-sigs/jobset",
        module="sigs.k8s.io/jobset",
        folders=("config/components/crd/bases",),
        files=("jobset.x-k8s.io_jobsets",),
        first="0.5",
        # pkg/webhooks/jobset_webhook.go, Default: rules of a failurePolicy get names.
        filled={"JobSet": ("name",)},
    ),
    Source(
        system="aibrix",
        title="AIBrix",
        repository="vllm-project/aibrix",
        module="github.com/vllm-project/aibrix",
        folders=("config/crd/orchestration", "config/crd/autoscaling", "config/crd/bases"),
        files=(
            "autoscaling.aibrix.ai_podautoscalers",
            "orchestration.aibrix.ai_rayclusterfleets",
            "orchestration.aibrix.ai_rolesets",
            "orchestration.aibrix.ai_stormservices",
        ),
        first="0.2",
    ),
    Source(
        system="kubeai",
        title="KubeAI",
        repository="substratusai/kubeai",
        folders=("manifests/crds", "charts/kubeai/templates/crds"),
        files=("kubeai.org_models",),
        first="0.10",
    ),
    Source(
        system="argo_rollouts",
        title="Argo Rollouts",
        repository="argoproj/argo-rollouts",
        module="github.com/argoproj/argo-rollouts",
        folders=("manifests/crds",),
        files=("rollout-crd",),
        first="1.6",
    ),
    Source(
        system="ome",
        title="OME",
        repository="sgl-project/ome",
        folders=("config/crd/full",),
        files=(
            "ome.io_clusterservingruntimes",
            "ome.io_inferenceservices",
            "ome.io_servingruntimes",
        ),
        first="0.1",
        # pkg/webhook/admission/isvc, and its defaulters.
        filled={"InferenceService": ()},
    ),
    Source(
        system="llmaz",
        title="llmaz",
        repository="InftyAI/llmaz",
        folders=("config/crd/bases",),
        files=("inference.llmaz.io_playgrounds", "inference.llmaz.io_services"),
        first="0.1",
        # pkg/webhook.
        filled={"Playground": (), "Service": ()},
    ),
)
