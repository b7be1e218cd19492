"""What the documents show is run, as a reader would."""

import inspect
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import qrmax
from qrmax import patterns
from qrmax.problems.simulator import Step
from qrmax.training.trainer import Evaluated
from qrmax.worlds import world_registry
from small_runs import corridor

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_every_python_block_runs_beside_the_files_shown(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(world_registry, "_registered", {})  # other tests know nothing of them
    blocks = BLOCK.findall((ROOT / document).read_text())
    names: dict[str, object] = {}
    for language, text in blocks:
        if language in ("toml", "text"):
            name = re.match(r"# (my[\w-]*\.\w+)", text)
            assert name is not None, "a file shown begins with its name"
            Path(name[1]).write_text(text)
    for language, text in blocks:
        if language == "python":
            exec(text, names)
    assert any(language == "python" for language, _ in blocks)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/guide.md"])
def test_every_link_leads_somewhere(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_the_table_of_patterns_shows_the_formula_of_each() -> None:
    rows = re.findall(r"^\|[^|]+\| (`\w+\(.*) \| (`.*`) \|$", _guide(), flags=re.MULTILINE)
    shown = []
    for functions, formulas in rows:
        calls = re.findall(r"`([^`]+)`", functions)
        printed = re.findall(r"`([^`]+)`", formulas.replace("\\|", "|"))
        assert [str(eval(call, vars(patterns))) for call in calls] == printed
        shown += [call.partition("(")[0] for call in calls]
    public = {
        name
        for name, thing in vars(patterns).items()
        if getattr(thing, "__module__", "") == patterns.__name__ and name[0].islower()
    }
    assert {*shown} == public


def test_the_example_for_weights_and_biases_sends_every_row_of_the_curve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [example] = [text for kind, text in BLOCK.findall(_guide()) if kind == "py"]
    assert len([line for line in example.splitlines() if line]) <= 10
    sent: list[tuple[int, dict[str, float]]] = []
    wandb = SimpleNamespace(
        init=lambda project, config: None,  # noqa: ARG005
        log=lambda row, step: sent.append((step, row)),
        finish=lambda: sent.append((0, {})),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    names = {"qrmax": qrmax, "problem": corridor(), "Evaluated": Evaluated}
    exec(example, names)
    run: qrmax.Run = names["run"]
    rows = [{k: v for k, v in point._asdict().items() if v is not None} for point in run.curve]
    assert sent == [*zip([point.step for point in run.curve], rows, strict=True), (0, {})]


def test_the_guide_lists_the_fields_of_a_step() -> None:
    assert re.findall(r"^  \| `step\.(\w+)` \|", _guide(), re.MULTILINE) == list(Step._fields)


def test_help_on_agents_lists_what_a_class_may_declare() -> None:
    declared = inspect.get_annotations(qrmax.Agent)
    listed = re.findall(r"^    (\w+): .+", inspect.getdoc(qrmax.Agent) or "", re.MULTILINE)
    assert [name for name in declared if name not in listed] == ["_declared"]


def _guide() -> str:
    return (ROOT / "docs/guide.md").read_text()
