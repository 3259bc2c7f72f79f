"""GPUs by resource claims: what a request stands for, and which pods share it."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.facts.claims import CLAIM, TEMPLATE, read_claims
from kthena_components.core.facts.context import GPU, Context, ReferencedObjects
from kthena_components.core.facts.device_requests import required_values
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod, read_pods
from kthena_components.core.facts.serving import EngineFacts, all_gpus_of, gpus_of
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, Unknown
from kthena_components.systems import CLAIMING, NAMED_BY
from tests.support.for_each import for_each

Args = dict[str, Any]
LATE = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
NVIDIA: Args = {"deviceClassName": "gpu.nvidia.com"}
MIG: Args = {"deviceClassName": "mig.nvidia.com"}
PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
PRODUCT = 'device.attributes["gpu.nvidia.com"].productName'
AMD = "device.attributes['gpu.amd.com']"
AMD_PRODUCT = f"{AMD}.productName"


def by(*expressions: str) -> list[Args]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def exactly(name: str = "gpu", **fields: Any) -> Args:
    return {"name": name, "exactly": {**NVIDIA, **fields}}


def claim(*requests: Args, version: str = "v1", name: str = "gpus") -> Args:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [*requests]}},
    }


def template(*requests: Args, **fields: Any) -> Args:
    made = claim(*requests, **fields)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


def device_class(name: str, *expressions: str) -> Args:
    metadata, spec = {"name": name}, {"selectors": by(*expressions)}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata,
            "spec": spec}  # fmt: skip


def beside(*bodies: Mapping[str, Any]) -> Context:
    found = ReferencedObjects(CLAIMING, NAMED_BY)
    for body in bodies:
        found.add(body)
    return Context(referenced=found)


def pod_of(*containers: Args, kind: tuple[str, str] = TEMPLATE, **more: Any) -> Args:
    field = "resourceClaimName" if kind == CLAIM else "resourceClaimTemplateName"
    spec = {"resourceClaims": [{"name": "all", field: "gpus"}], "containers": [*containers]}
    return {"spec": {**spec, **more}}


def container(name: str = "engine", *requests: str, **resources: Any) -> Args:
    claims = [{"name": "all", "request": request} for request in requests or ("",)]
    return {"name": name, "image": "own:1", "command": ["vllm", "serve", "m"] * (name == "engine"),
            "resources": {"claims": claims, **resources}}  # fmt: skip


def pod(*bodies: Args, kind: tuple[str, str] = TEMPLATE) -> PodFacts:
    return read_pod(pod_of(container(), kind=kind), "", context=beside(*bodies))


@for_each(
    ("requests", "gpus"),
    [
        ([exactly(count=8)], 8),
        ([exactly()], 1),
        ([exactly(count=0)], 1),
        ([exactly(count=8.0, allocationMode="ExactCount")], 8),
        ([exactly(count=2), exactly("more", count=2)], 4),
        ([exactly(deviceClassName="gpu.amd.com", count=4)], 4),
        ([exactly(deviceClassName="compute-domain-default-channel.nvidia.com")], 0),
        ([exactly(count=8), exactly("c", deviceClassName="compute-domain-daemon.nvidia.com")], 8),
        ([{"name": "gpu", "firstAvailable": [{**NVIDIA, "name": "a", "count": 2,
           "selectors": by(f"{PRODUCT} == 'x'")}, {**NVIDIA, "name": "b", "count": 2}]}], 2),
    ],
)  # fmt: skip
def test_a_request_has_a_number_of_gpus(requests: list[Args], gpus: int) -> None:
    assert pod(template(*requests)).gpus == gpus


@for_each(
    ("request", "because"),
    [
        (exactly(allocationMode="All"), "takes all devices of a node that match"),
        (exactly(allocationMode="Half"), "has the allocationMode 'Half'"),
        (exactly(adminAccess=True), "has adminAccess, which allocates no device"),
        (exactly(capacity={"requests": {"memory": "4Gi"}}), "asks for a part of a device's"),
        (exactly(count=-1), "has the count -1, which is not a number of devices"),
        (exactly(count=True), "has the count true"),
        (exactly(count="8"), "has the count '8'"),
        (exactly(count=2**40), "has the count 1099511627776, which is not a number of devices"),
        (exactly(count=LATE), "has a number of devices that is not known yet"),
        (exactly(deviceClassName=LATE), "has a class that is not known yet"),
        (exactly(deviceClassName="own"), "is of the class 'own', whose devices are not known"),
        (exactly(deviceClassName=None), "is of the class null, whose devices are not known"),
        ({"name": "gpu", **NVIDIA}, "has neither exactly nor firstAvailable"),
        ({"name": "gpu", "firstAvailable": [{**NVIDIA, "count": 8}, {**NVIDIA, "count": 4}]},
         "lists alternatives"),
        ({"name": "gpu", "firstAvailable": [{**NVIDIA, "count": 1}, {**MIG, "count": 1}]},
         "lists alternatives"),
    ],
)  # fmt: skip
def test_a_number_that_is_not_known_is_not_guessed(request: Args, because: str) -> None:
    found = pod(template(request)).gpus
    assert isinstance(found, Unknown)
    assert f"request 'gpu' of ResourceClaimTemplate 'gpus' {because}" in found.because


@for_each(
    ("kind", "version", "request", "gpus"),
    [
        (CLAIM, "v1beta1", {"name": "gpu", **NVIDIA, "count": 2}, 2),
        (TEMPLATE, "v1beta1", {"name": "gpu", **NVIDIA}, 1),
        (CLAIM, "v1beta2", exactly(count=2), 2),
        (CLAIM, "v1", exactly(count=2), 2),
    ],
)
def test_each_version_is_read(kind: Any, version: str, request: Args, gpus: int) -> None:
    make = claim if kind == CLAIM else template
    assert pod(make(request, version=version), kind=kind).gpus == gpus


DRIVER = "device.driver == 'gpu.nvidia.com'"
TYPE = "device.attributes['gpu.nvidia.com'].type"


@for_each(
    ("expressions", "gpus"),
    [
        ([f"{DRIVER} && {TYPE} == 'gpu'"], 4),
        ([DRIVER, f"{TYPE} == 'gpu'"], 4),
        (["device.driver == 'gpu.amd.com'"], 4),
        (["device.driver == 'compute-domain.nvidia.com'"], 0),
        ([DRIVER], None),
        ([f"{DRIVER} || {TYPE} == 'gpu'"], None),
        ([f"{DRIVER} && {TYPE} == 'vfio'"], None),
        ([], None),
    ],
)
def test_the_selectors_of_a_class_state_its_devices(
    expressions: list[str], gpus: int | None
) -> None:
    asked = template(exactly(deviceClassName="ours", count=4))
    found = pod(asked, device_class("ours", *expressions)).gpus
    assert found == gpus if gpus is not None else isinstance(found, Unknown)


@for_each(
    ("expression", "required"),
    [
        (f"{PRODUCT} == 'A'", {"gpu.nvidia.com/productName": {"A"}}),
        (f"'A' == {PRODUCT}", {"gpu.nvidia.com/productName": {"A"}}),
        (f"{PRODUCT} in ['A', \"B\"]", {"gpu.nvidia.com/productName": {"A", "B"}}),
        ("device.attributes['gpu.nvidia.com']['productName'] == 'A'",
         {"gpu.nvidia.com/productName": {"A"}}),
        (f"({DRIVER}\n  && ({PRODUCT}=='A')) && device.capacity['x'].y.compareTo(quantity('1'))==0",
         {"driver": {"gpu.nvidia.com"}, "gpu.nvidia.com/productName": {"A"}}),
        (f"{PRODUCT} != 'A'", {}),
        (f"!({DRIVER} && {PRODUCT} == 'A' && true)", {}),
        (f"[1].exists(x, true && {PRODUCT} == 'A' && true)", {}),
        (f"{PRODUCT} == 'A' || {PRODUCT} == 'B'", {}),
        (f"{DRIVER} && ({PRODUCT} == 'A' || {PRODUCT} == 'B')", {"driver": {"gpu.nvidia.com"}}),
        (f"true ? true : {PRODUCT} == 'A'", {}),
        (f"{PRODUCT} == 'A' // && {DRIVER}", {}),
        (f"{PRODUCT} == 'A\\' && {DRIVER} && true'", {}),
        (f"{PRODUCT}.lowerAscii().matches('^.*a100.*$')", {}),
        ("(" * 5000 + DRIVER + ")" * 5000, {}),
        ("", {}),
        (LATE, {}),
        (7, {}),
        (None, {}),
    ],
)  # fmt: skip
def test_only_plain_comparisons_are_read(expression: Any, required: dict[str, set[str]]) -> None:
    assert required_values(by(expression)) == required


def test_all_selectors_apply() -> None:
    found = required_values(by(f"{PRODUCT} in ['A', 'B']", f"{PRODUCT} in ['B', 'C']"))
    assert found == {"gpu.nvidia.com/productName": {"B"}}


@for_each(
    ("selectors", "name"),
    [
        (by(f"{PRODUCT} == 'NVIDIA H100 80GB HBM3'"), "NVIDIA H100"),
        (by(f"{PRODUCT} in ['NVIDIA H100 80GB HBM3', 'NVIDIA H200']"), "NVIDIA H200"),
        (by(f"{PRODUCT} == 'strange'"), Unknown),
        (by(f"{AMD_PRODUCT} == 'AMD_Instinct_MI300X_OAM'"), "AMD Instinct MI300X"),
        (
            by(f"{AMD_PRODUCT} == 'AMD_Instinct_MI300X_OAM'", f"{AMD}.type == 'amdgpu-partition'"),
            Unknown,
        ),
        (by(LATE), Unknown),
        (by(DRIVER), None),
        ([], None),
    ],
)
def test_a_selector_states_the_gpu(selectors: list[Args], name: Any) -> None:
    found = pod(template(exactly(selectors=selectors))).gpu
    assert found is None if name is None else True
    assert isinstance(found, Unknown) == (name is Unknown)
    assert not isinstance(found, GpuFacts) or found.name == name


def test_a_gpu_that_the_user_names_counts_where_the_one_of_a_selector_is_unknown() -> None:
    body = pod_of(container())
    body["metadata"] = {"annotations": {GPU: "h100"}}
    for product, name in (("strange", "NVIDIA H100"), ("NVIDIA H200", "NVIDIA H200")):
        asked = template(exactly(selectors=by(f"{PRODUCT} == '{product}'")))
        found = read_pod(body, "", context=beside(asked)).gpu
        assert isinstance(found, GpuFacts)
        assert found.name == name


def test_mig_devices_are_parts_of_a_gpu_and_have_its_memory_by_their_profile() -> None:
    one = pod(template(exactly(**MIG, count=2, selectors=by(PROFILE))))
    assert [(d.resource, d.count, d.part) for d in one.devices] == [
        ("nvidia.com/mig-1g.10gb", 2, "a MIG device")
    ]
    assert isinstance(one.gpu, GpuFacts)
    assert one.gpu.memory_gib == 10
    any_profile = pod(template(exactly(**MIG)))
    assert [d.part for d in any_profile.devices] == ["a MIG device"]
    assert any_profile.gpu is None


def test_a_container_uses_one_request_of_a_claim_or_all() -> None:
    context = beside(template(exactly("a", count=2), exactly("b", count=4)))
    pods = {
        requests: read_pod(pod_of(container("engine", *requests)), "", context=context).gpus
        for requests in (("",), ("a",), ("b",), ("a", "b"), ("", "a"))
    }
    assert pods == {("",): 6, ("a",): 2, ("b",): 4, ("a", "b"): 6, ("", "a"): 6}
    none = read_pod(pod_of(container("engine", "c")), "", context=context).gpus
    assert isinstance(none, Unknown)
    assert none.because.endswith("and ResourceClaimTemplate 'gpus' has no request 'c'")


def test_the_containers_of_a_pod_share_a_claim() -> None:
    context = beside(template(exactly("a", count=2), exactly("b", count=4)))
    both = pod_of(container("engine", "a"), container("beside", "a", "b"))
    found = read_pod(both, "", context=context)
    assert (found.gpus, found.all_gpus) == (2, 6)


def test_two_entries_that_name_a_claim_have_the_same_devices_and_of_a_template_their_own() -> None:
    def named(field: str, context: Context) -> object:
        entries = [{"name": name, field: "gpus"} for name in ("x", "y")]
        resources = {"claims": [{"name": "x"}, {"name": "y"}]}
        one = {"name": "engine", "command": ["vllm", "serve", "m"], "resources": resources}
        spec = {"resourceClaims": entries, "containers": [one]}
        return read_pod({"spec": spec}, "", context=context).gpus

    assert named("resourceClaimName", beside(claim(exactly(count=4)))) == 4
    assert named("resourceClaimTemplateName", beside(template(exactly(count=4)))) == 8


def engine(entry: PodFacts, worker: PodFacts | None, pods: int = 3) -> EngineFacts:
    return EngineFacts(path="", name="e", pods=pods, replicas=1, entry=entry, worker=worker)


def test_pods_that_name_a_claim_share_its_devices() -> None:
    shared = pod(claim(exactly(count=4)), kind=CLAIM)
    own = pod(template(exactly(count=4)))
    none = read_pod({"spec": {"containers": [{"name": "engine"}]}}, "")
    for entry, worker, gpus in (
        (shared, None, 4), (own, None, 12), (shared, shared, 4), (own, own, 12),
        (own, shared, 8), (shared, own, 12), (none, shared, 4), (shared, none, 4),
    ):  # fmt: skip
        assert (gpus_of(engine(entry, worker)), all_gpus_of(engine(entry, worker))) == (gpus, gpus)
    assert gpus_of(engine(shared, None, 1)) == all_gpus_of(engine(shared, None, 1)) == 4
    assert gpus_of(engine(shared, None, 0)) == all_gpus_of(engine(shared, None, 0)) == 0


def test_resources_and_claims_are_added() -> None:
    both = container(limits={"nvidia.com/gpu": 4})
    context = beside(template(exactly(count=2)))
    assert read_pod(pod_of(both), "", context=context).gpus == 6
    unknown = read_pod(pod_of(both), "")
    assert unknown.gpus == 4
    assert unknown.claimed == Unknown(
        "container 'engine' may get more GPUs by resource claims, and ResourceClaimTemplate "
        "'gpus' is not among the objects that are checked"
    )


def test_two_engines_of_a_pod_have_their_own_requests() -> None:
    context = beside(template(exactly("a", count=2), exactly("b", count=4)))
    second = {**container("engine", "b"), "name": "second"}
    pods = read_pods(pod_of(container("engine", "a"), second), "", context=context)
    assert [each.gpus for each in pods] == [2, 4]


BROKEN: list[Any] = [None, 7, "x", [], {}, [7], [None], LATE, [LATE], {"requests": LATE}]


@for_each("value", BROKEN, ids=repr)
def test_no_value_raises(value: Any) -> None:
    context = beside({**claim(), "spec": value}, {**claim(name="a"), "spec": {"devices": value}})
    for field in ("resourceClaims", "containers"):
        read_pod({"spec": {**pod_of(container())["spec"], field: value}}, "", context=context)
    for name in ("gpus", "a"):
        entries = [{"name": "all", "resourceClaimName": name}]
        spec = {"resourceClaims": entries}
        read_claims(container(), spec, context)
        read_claims({"resources": {"claims": value}}, spec, context)
    requests = claim()
    requests["spec"]["devices"]["requests"] = value
    found = pod(requests, kind=CLAIM).gpus
    assert found == 0 or isinstance(found, Unknown)
    asked = {"name": "gpu", "exactly": value}
    for odd in (asked, {"name": value, "exactly": value}, {"name": "gpu", "firstAvailable": value}):
        assert isinstance(pod(claim(odd), kind=CLAIM).gpus, Unknown)
    for field in ("selectors", "capacity", "tolerations"):
        pod(claim(exactly(**{field: value})), kind=CLAIM)


def test_an_object_and_what_kustomize_built_from_it_are_one() -> None:
    kind, found = (
        ("resource.k8s.io", "DeviceClass"),
        ReferencedObjects((("resource.k8s.io", "DeviceClass"),)),
    )
    body: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {},
    }
    found.add(body)
    found.add(
        {**body, "metadata": {"name": "gpu", "annotations": {"config.kubernetes.io/origin": "x"}}}
    )
    assert found.find(kind, "gpu", "") is not None
    found.add({**body, "spec": {"selectors": []}})
    assert found.find(kind, "gpu", "") is None
