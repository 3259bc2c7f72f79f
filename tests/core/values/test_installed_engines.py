"""What start scripts install of engines, and the release that runs then."""

from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.images import Installation, Version, installed_by, read_image
from tests.support.for_each import for_each

NEW = Installation("vllm", (0, 11, 0))
SOME, PACKAGE = Installation("vllm"), Installation(None)
GIT = "git clone https://github.com/vllm-project/vllm.git"

SCRIPTS: tuple[tuple[str, tuple[Installation, ...]], ...] = (
    ("pip install vllm==0.11.0 && vllm serve m", (NEW,)),
    ("uv pip install 'vllm[audio]==0.11.0' --extra-index-url https://wheels.vllm.ai/x", (NEW,)),
    ("pip install vllm==0.11.0+cu118", (NEW,)),
    ("pip install https://example.com/vllm-0.11.0+cu126-cp38-abi3-linux_x86_64.whl", (NEW,)),
    ("uvx --from vllm==0.11.0 vllm serve m", (NEW,)),
    ("uv run --with=vllm==0.11.0 vllm serve m", (NEW,)),
    ("pip install \\\n  vllm==0.11.0", (NEW,)),
    ("pip install -U vllm", (SOME,)),
    ("pip install 'vllm>=0.11.0'", (SOME,)),
    ("pip install vllm==$VERSION", (SOME,)),
    ("pip install -U 'vllm[audio]'", (SOME,)),
    ("if [ -n $X ]; then pip install vllm==0.11.0; fi", (SOME,)),
    ("pip install vllm==0.11.0 || true", (SOME,)),
    (f"{GIT} && cd vllm && pip install -e .", (SOME,)),
    (f"{GIT}; cd vllm; VLLM_USE_PRECOMPILED=1 uv pip install --editable .", (SOME,)),
    (f"{GIT}\ncd vllm\npython setup.py develop", (SOME,)),
    ("pip install vllm-my-loader", (PACKAGE,)),
    ("pip install 'vllm[audio]' && vllm serve m", ()),
    ("pip install vllm-router", ()),
    ("pip install ray[default] && vllm serve m", ()),
    ("pip uninstall -y vllm", ()),
    ("# pip install vllm==0.11.0\nvllm serve m", ()),
    (f"{GIT} && python vllm/examples/x.py", ()),
    ("pip install vllm==0.11", (NEW,)),
    ("/usr/bin/pip3 install vllm==0.11.0", (NEW,)),
    ("pip install --target=/x vllm==0.11.0", (SOME,)),
    ("pip install --dry-run vllm==0.11.0", (SOME,)),
    ("echo pip install vllm==0.11.0", (SOME,)),
    ("python -m venv x && x/bin/pip install vllm==0.11.0", (SOME,)),
    (f"{GIT}\nhelm dependency build\npip install -r requirements.txt", ()),
    ("echo vllm && pip install -e . && vllm serve m", ()),
    ("uv add vllm==0.11.0", (NEW,)),
    ("conda install -y vllm", (SOME,)),
    ("helm repo add vllm https://example.com", ()),
)


@for_each("script, found", SCRIPTS)
def test_a_script_installs_these(script: str, found: tuple[Installation, ...]) -> None:
    assert installed_by([script]) == found


RUNS: tuple[tuple[str, str, Version | None], ...] = (
    ("vllm/vllm-openai:v0.10.0", "vllm serve m", (0, 10, 0)),
    ("vllm/vllm-openai:v0.10.0", "pip install vllm==0.11.0", (0, 11, 0)),
    ("python:3.12", "pip install vllm==0.11.0", (0, 11, 0)),
    ("vllm/vllm-openai:v0.10.0", "pip install -U vllm", None),
    ("vllm/vllm-openai:v0.10.0", "pip install vllm==0.11.0\npip install vllm==0.12.0", None),
    ("vllm/vllm-openai:v0.10.0", "pip install vllm==0.11.0 vllm-plugin", None),
    ("vllm/vllm-openai:v0.10.0", "pip install vllm==0.11.0\npip install -U vllm", None),
    ("vllm/vllm-openai:v0.10.0", "pip install vllm==0.11.0\npip install vllm==0.11.0", (0, 11, 0)),
)


@for_each("image, script, release", RUNS)
def test_the_release_that_runs(image: str, script: str, release: Version | None) -> None:
    read = replace(read_image(image), installs=installed_by([script]))
    assert read.release_of("vllm") == release
    assert read.may_replace("vllm") is (release is None)
