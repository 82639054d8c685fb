"""The pages that nobody writes: one for each claim, and their list."""

from pathlib import Path

from steepest import catalogue
from steepest.catalogue import chapter_title

CLAIMS = "claims"
"""The folder of the claims' pages."""


def write_claims(stage: Path) -> None:
    """Write a source for each claim's page, and for the list of all claims."""
    folder = stage / CLAIMS
    folder.mkdir(parents=True, exist_ok=True)
    lines = catalogue.built_in()
    for name, line in lines.items():
        text = f"(claim-{name})=\n# {_plain(line.says)}\n\n:::{{claim-page}} {name}\n:::\n"
        (folder / f"{name}.md").write_text(text, "utf-8")
    (folder / "index.md").write_text(_index(), "utf-8")


def _index() -> str:
    parts = [
        "# All claims\n",
        "Each line is a statement of the theory, what became of it at seed 0, and its page.\n",
    ]
    lines = catalogue.built_in()
    for chapter in dict.fromkeys(line.chapter for line in lines.values()):
        title = chapter_title(chapter)
        parts.append(f"## {title[:1].upper()}{title[1:]}\n\n:::{{claims}} {chapter}\n:::\n")
    entries = "\n".join(f"{name} <{name}>" for name in lines)
    parts.append(f":::{{toctree}}\n:hidden:\n\n{entries}\n:::\n")
    return "\n".join(parts)


def _plain(sentence: str) -> str:
    """A sentence as a heading: what Markdown would take for markup stands for itself."""
    for mark in "\\`*_[]<>#|$":
        sentence = sentence.replace(mark, f"\\{mark}")
    return sentence
