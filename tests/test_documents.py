"""What the documents show is run, as a reader would."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_every_python_block_runs_beside_the_files_shown(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
