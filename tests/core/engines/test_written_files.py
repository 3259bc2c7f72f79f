"""Config files that a script writes before it starts an engine."""

from typing import Any

import pytest

from kthena_components.core.engines import Mount, read_command
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each

ENGINE = "vllm serve M --config /data/c.yaml"
WRITE = "echo 'tensor-parallel-size: 8' > /data/c.yaml\n"
KNOWN = (
    ("cat > /data/c.yaml <<EOF\ntensor-parallel-size: 8\nEOF\n", 8),
    ("cat <<'EOF' > /data/c.yaml\ntensor-parallel-size: 8\nEOF\n", 8),
    ("echo 'tensor-parallel-size: 8' > /data/c.yaml\n", 8),
    ("TP=4\necho tensor-parallel-size: $TP > /data/c.yaml\n", 4),
    ("F=/data/c.yaml\necho 'tensor-parallel-size: 8' > $F\n", 8),
    ("cd /data\necho 'tensor-parallel-size: 8' > c.yaml\n", 8),
    ("{ echo 'tensor-parallel-size: 8'; echo 'max-model-len: 9'; } > /data/c.yaml\n", 8),
    ("(echo 'tensor-parallel-size: 8') > /data/c.yaml\n", 8),
    ("(echo 'tensor-parallel-size: 8' > /data/c.yaml)\n", 8),
    ("echo 'max-model-len: 9' > /data/c.yaml\necho 'tensor-parallel-size: 8' >> /data/c.yaml\n", 8),
    ("echo 'max-model-len: 2' > /data/c.yaml\necho 'tensor-parallel-size: 8' >| /data/c.yaml\n", 8),
    ("echo 'tensor-parallel-size: 8' > /data/c.yaml\ncat /data/c.yaml\nsleep 5\nmkdir -p /x\n", 8),
    ("echo 'tensor-parallel-size: 8' > /data/c.yaml\necho start > /dev/stderr\necho x >&2\n", 8),
    (f"if $A; then\n{WRITE}else\n{WRITE}fi\n", 8),
)  # fmt: skip
LATE = (
    "",
    "echo 'tensor-parallel-size: 8' > /data/d.yaml\n",
    "echo 'tensor-parallel-size: 8' >> /data/c.yaml\n",
    "echo tensor-parallel-size: $TP > /data/c.yaml\n",
    "echo 'tensor-parallel-size: 8' > /data/c.yaml\nsed -i s/8/4/ /data/c.yaml\n",
    "echo 'tensor-parallel-size: 8' > /data/c.yaml\npython3 write.py\n",
    "echo 'tensor-parallel-size: 8' > /data/c.yaml\nsed s/8/4/ /data/c.yaml > /data/c.yaml\n",
    "echo 'tensor-parallel-size: 8' > /data/c.yaml\necho 'tensor-parallel-size: 4' > $F\n",
    "echo 'tensor-parallel-size: 8' > /data/c.yaml\nX=$(echo a; echo b > /data/c.yaml)\n",
    "echo 'tensor-parallel-size: 8' > /data/c.yaml\nexec > /data/c.yaml\n",
    "envsubst < /in/c.yaml > /data/c.yaml\n",
    "if [ $A = b ]; then echo 'tensor-parallel-size: 8' > /data/c.yaml; fi\n",
    "for i in $A; do echo 'tensor-parallel-size: 8' >> /data/c.yaml; done\n",
    "python3 print.py > /data/c.yaml\n",
)


def tensor(script: str, shell: str = "bash") -> Any:
    found = read_command([shell, "-c", script + ENGINE], {})
    assert found is not None
    return found.tensor


@for_each("row", KNOWN)
def test_a_file_that_a_script_writes_is_read(row: tuple[str, int]) -> None:
    assert tensor(row[0]) == row[1]
    assert tensor(row[0], "sh") == row[1]


@for_each("script", LATE)
def test_a_file_that_may_have_changed_is_not_known(script: str) -> None:
    assert isinstance(tensor(script), Unknown)


@pytest.mark.parametrize("flag", ["--extra_llm_api_options", "--extra-engine-args"])
def test_a_written_file_overrides_the_line_of_tensorrt_llm(flag: str) -> None:
    program = "trtllm-serve M" if "api" in flag else "python3 -m dynamo.trtllm --model-path M"
    script = f"echo 'tensor_parallel_size: 8' > /data/f\n{program} --tp_size 2 {flag} /data/f"
    found = read_command(["bash", "-c", script], {})
    assert found is not None
    assert found.tensor == 8


def test_a_script_that_a_script_writes_is_read() -> None:
    script = "cat > /data/run.sh <<'EOF'\nvllm serve M -tp 8\nEOF\nchmod +x /data/run.sh\n"
    script += "bash /data/run.sh"
    found = read_command(["bash", "-c", script], {})
    assert found is not None
    assert found.tensor == 8


def test_what_a_script_writes_hides_what_is_mounted_there() -> None:
    mounted = Mount("/data/c.yaml", (("", "tensor-parallel-size: 2"),))
    words = ["bash", "-c", f"echo 'tensor-parallel-size: 8' > /data/c.yaml\n{ENGINE}"]
    found = read_command(words, {}, files=(mounted,))
    assert found is not None
    assert found.tensor == 8
