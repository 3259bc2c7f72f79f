"""Releases of Helm in files of Terraform, and the charts that they name."""

from pathlib import Path

import pytest

from kthena_components.reading.releases.release import ChartRelease, Outside, Place, Repository
from kthena_components.reading.releases.terraform import terraform
from tests.support.for_each import for_each

RELEASE = 'resource "helm_release" "%s" {\n  chart = %s\n}\n'


@pytest.mark.parametrize(
    ("chart", "folder"),
    [
        ('"./chat"', "infra/chat"),
        ('"${path.module}/chat"', "infra/chat"),
        ('"${path.root}/charts/chat"', "charts/chat"),
        ("local.chart", "."),
        ('"redis"', None),
    ],
)
def test_the_chart_of_a_release_is_found(tmp_path: Path, chart: str, folder: str | None) -> None:
    root = tmp_path.resolve()
    for each in ("infra/chat", "charts/chat"):
        (root / each).mkdir(parents=True)
        (root / each / "Chart.yaml").write_text("name: chat\n")
    place = Place(file=str(root / "infra/main.tf"), what="Terraform", boundary=str(root))
    text = RELEASE % ("a", '"other"') + RELEASE % ("b", chart)
    first, second = terraform(text, place, Repository(str(root)))
    assert isinstance(first, Outside)
    assert isinstance(second, Outside | ChartRelease)
    assert (first.folder, first.place.what) == ("", "helm_release a")
    assert second.folder == ("" if folder is None else str((root / folder).resolve()))


VALUES: dict[str, tuple[list[str], list[str]] | str] = {
    "": ([], []),
    'values = ["a: 1"]': (["a: 1"], []),
    "values = [<<-EOT\n    a: 1\n  EOT\n]": (["a: 1\n"], []),
    'values = [file("v.yaml")]': (["b: 2\n"], []),
    'values = [file("${path.module}/v.yaml")]': (["b: 2\n"], []),
    'values = ["${file("${path.module}/v.yaml")}"]': (["b: 2\n"], []),
    "values = [yamlencode({ a = { b = 1 } })]": (['{"a": {"b": 1}}'], []),
    "values = [yamlencode({ text = var.b })]": (['{"text": "__TERRAFORM__"}'], []),
    "values = [yamlencode({ size = var.b })]": "its value size is known only to Terraform",
    'values = [file("none.yaml")]': "its values are in none.yaml, which is not in the repository",
    'values = [templatefile("v.yaml", {})]': (["b: 2\n"], []),
    'values = [templatefile("${path.module}/t.yaml", { a = 4, b = var.b })]': (
        ["size: 4\ntext: __TERRAFORM__\n"],
        [],
    ),
    'values = [templatefile("t.yaml", { b = "x" })]': "its value size is known only to Terraform",
    'values = [templatefile("t.yaml", var.a)]': "only Terraform evaluates its values",
    'values = [templatefile("e.yaml", {})]': "only Terraform evaluates its values",
    "values = [<<-EOT\n    text: ${var.a}\n  EOT\n]": (["text: __TERRAFORM__\n"], []),
    "values = [<<-EOT\n    size: ${var.a}\n  EOT\n]": ("its value size is known only to Terraform"),
    "values = [<<-EOT\n    ${var.a}: 1\n  EOT\n]": "only Terraform evaluates its values",
    "values = var.a": "only Terraform evaluates its values",
    'set {\n name = "a.b"\n value = "4"\n }': ([], ["--set=a.b=4"]),
    'set {\n name = "a"\n value = true\n }': ([], ["--set=a=true"]),
    'set {\n name = "a"\n value = "1"\n type = "string"\n }': ([], ["--set-string=a=1"]),
    'set = [{ name = "a", value = 1 }, { name = "b", value = "x" }]': (
        [],
        ["--set=a=1", "--set=b=x"],
    ),
    'set_list {\n name = "a"\n value = ["b", "c"]\n }': ([], ["--set=a={b,c}"]),
    'set_list = [{ name = "a", value = ["b"] }]\n set = [{ name = "c", value = 1 }]': (
        [],
        ["--set=c=1", "--set=a={b}"],
    ),
    'set_sensitive {\n name = "c.text"\n value = var.a\n }': ([], ["--set=c.text=__TERRAFORM__"]),
    'set {\n name = "text"\n value = "a${var.a}"\n }': ([], ["--set=text=__TERRAFORM__"]),
    'set {\n name = "size"\n value = var.a\n }': "its value size is known only to Terraform",
    "set {\n name = var.a\n value = 1\n }": "only Terraform evaluates its values",
    'set {\n name = "a"\n value = 1\n type = "literal"\n }': (
        "only Terraform evaluates its values"
    ),
    "set = concat(var.a, [])": "only Terraform evaluates its values",
    'dynamic "set" {\n for_each = var.a\n content {}\n }': (
        "its dynamic is known only to Terraform"
    ),
    'repository = "https://x"': "its chart ./chat is in the registry https://x",
    "repository = var.a": "only Terraform evaluates its values",
}


@for_each("text", VALUES)
def test_literal_values_are_read(tmp_path: Path, text: str) -> None:
    root = tmp_path.resolve()
    (root / "chat/templates").mkdir(parents=True, exist_ok=True)
    (root / "chat/Chart.yaml").write_text("name: chat\n")
    (root / "v.yaml").write_text("b: 2\n")
    (root / "t.yaml").write_text("size: ${a}\ntext: ${b}\n")
    (root / "e.yaml").write_text("a: %{ if b }1%{ endif }\n")
    template = "a: {{ .Values.text | quote }}\nb: {{ mul .Values.size 2 }}\n"
    (root / "chat/templates/a.yaml").write_text(template)
    place = Place(file=str(root / "main.tf"), what="Terraform", boundary=str(root))
    written = f'resource "helm_release" "a" {{\n  chart = "./chat"\n  name = "b"\n  {text}\n}}\n'
    (found,) = terraform(written, place, Repository(str(root)))
    wanted = VALUES[text]
    if isinstance(found, Outside):
        assert found.why == wanted
    else:
        assert isinstance(found, ChartRelease)
        assert ([*found.values], [*found.options]) == wanted
        assert (found.name, found.folder) == ("b", str(root / "chat"))


@pytest.mark.parametrize("name", ["a.tf", "a.tf.json"])
@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "variable x {}", "{", '{"resource": [{"x": 1}]}']
)
def test_a_file_without_releases_has_none(tmp_path: Path, name: str, text: str) -> None:
    place = Place(file=name, what="Terraform", boundary=str(tmp_path))
    assert terraform(text, place, Repository(str(tmp_path))) == []
