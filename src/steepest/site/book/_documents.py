"""The pages that nobody writes: claims, their list and formulas, the works that they cite, tutorials as notebooks."""

import re
from pathlib import Path

from steepest import catalogue
from steepest.catalogue import chapter_title
from steepest.sources import sources

CLAIMS = "claims"
"""The folder of the claims' pages."""
FORMULAS = "formulas"
"""The page that leads to the formulas, and the folder of their pages, one a chapter of the catalogue."""


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


def write_formulas(stage: Path) -> None:
    """Write a source for the formulas of each chapter of the catalogue, and for the page that leads to them."""
    folder = stage / FORMULAS
    folder.mkdir(parents=True, exist_ok=True)
    lines = catalogue.built_in().values()
    chapters = list(dict.fromkeys(line.chapter for line in lines))
    for chapter in chapters:
        parts = [
            f"# Formulas: {chapter_title(chapter)}\n",
            "Which formula does each claim test? A claim's page says what its letters mean, where it holds, and what "
            "would have refuted it. [The formulas of the other chapters](../formulas.md) have pages of their own.\n",
            f":::{{formulas}} {chapter}\n:::\n",
        ]
        (folder / f"{chapter}.md").write_text("\n".join(parts), "utf-8")
    parts = [
        "# Formulas\n",
        "Which formula does each claim test? They stand here chapter by chapter, each with its verdict at seed 0.\n",
    ]
    for chapter in chapters:
        title = chapter_title(chapter)
        count = sum(line.chapter == chapter for line in lines)
        parts.append(
            f"* [{title[:1].upper()}{title[1:]}]({FORMULAS}/{chapter}.md): {count} claim{'s' * (count != 1)}"
        )
    entries = "\n".join(f"{FORMULAS}/{chapter}" for chapter in chapters)
    parts.append(f"\n:::{{toctree}}\n:hidden:\n\n{entries}\n:::\n")
    (stage / f"{FORMULAS}.md").write_text("\n".join(parts), "utf-8")


def _plain(sentence: str) -> str:
    r"""A sentence as a heading: Markdown's marks stand for themselves; ``_{…}``, ``^{…}``, ``^(…)`` and P_e are set.

    >>> print(_plain("minima of ℓ_{2/L}, like N^{3/2}, n^(−1/2), P_o/P_e, λ_max and a_b"))
    minima of ℓ{sub}`2/L`, like N{sup}`3/2`, n{sup}`−1/2`, P{sub}`o`/P{sub}`e`, λ{sub}`max` and a\_b
    """
    braced = re.sub(r"(?<=[\w)])\^\(([^()\s]{1,8})\)", r"^{\1}", sentence)
    # an index of a capital or a Greek letter; names of code are longer, or small
    braced = re.sub(r"(?<!\w)([A-ZΑ-Ωα-ω])_(\w{1,3})(?!\w)", r"\1_{\2}", braced)
    pieces = re.split(r"([_^])\{([^{}]+)\}", braced)
    parts = []
    for words, mark, script in zip(
        pieces[::3], [*pieces[1::3], ""], [*pieces[2::3], ""], strict=True
    ):
        for sign in "\\`*_[]<>#|$":
            words = words.replace(sign, f"\\{sign}")
        role = {"_": "sub", "^": "sup"}.get(mark, "")
        parts.append(f"{words}{{{role}}}`{script}`" if role else words)
    return "".join(parts)


def write_works(stage: Path) -> None:
    """Write the list of all works that claims cite, each with the claims that do."""
    works = sources()
    citing: dict[str, list[str]] = {key: [] for key in works}
    for name, line in catalogue.built_in().items():
        for key in dict.fromkeys(re.findall(r"\[@([\w-]+)\]", line.path.read_text("utf-8"))):
            if key in citing:
                citing[key].append(name)
    parts = ["# Works\n", "What the claims rest on, and the claims that test it.\n"]
    for key, work in sorted(works.items(), key=lambda pair: pair[1].short.casefold()):
        link = f" [{_plain(work.link_text)}]({work.link})" if work.link else ""
        claims = ", ".join(f"[{name}](claims/{name}.md)" for name in citing[key])
        told_by = f" Tested by {claims}." if claims else ""
        parts.append(
            f"* **{_plain(work.short)}.** {_plain(work.people)}: *{_plain(work.title)}*. "
            f"{_plain(work.venue)}, {work.year}.{link}{told_by}"
        )
    (stage / "works.md").write_text("\n".join(parts) + "\n", "utf-8")


def write_notebooks(stage: Path) -> None:
    """Write each tutorial as a notebook beside it, and offer it on the tutorial's page."""
    import jupytext

    for script in sorted((stage / "tutorials").glob("*.py")):
        text = script.read_text("utf-8")
        notebook = jupytext.reads(text, fmt="py:percent")
        for place, cell in enumerate(
            notebook.cells, 1
        ):  # drawn at random otherwise, anew in each build
            cell["id"] = f"cell-{place}"
        name = f"notebooks/{script.stem}.ipynb"
        (script.parent / "notebooks").mkdir(exist_ok=True)
        jupytext.write(notebook, script.parent / name, fmt="ipynb")
        offer = f"{{download}}`As a notebook <{name}>` · {{download}}`as a script <{script.name}>`"
        script.write_text(
            re.sub(r"^(# # .+\n)", rf"\1#\n# {offer}\n", text, count=1, flags=re.M), "utf-8"
        )
