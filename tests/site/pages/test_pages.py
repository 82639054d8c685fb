"""Pages stand on their own: well formed, light, nothing from outside, links that lead somewhere, text that is text."""

import re
import warnings
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from steepest.sources import sources

WORKS = {work.link for work in sources().values()}
"""What a reader may follow, and no page loads."""
VOID = {"meta", "link", "br", "img", "hr", "input"}
PAGES = (
    "index.html",
    "plain-decay/index.html",
    "growing/index.html",
    "shifted-decay/index.html",
    "powerless/index.html",
)


class Reader(HTMLParser):
    """Collects elements and text, and complains of tags that do not match."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.elements = []
        self.words = []
        self.feed(path.read_text("utf-8"))
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, name):
        return [found[name] for _, found in self.elements if found.get(name)]


@pytest.fixture(scope="module")
def pages(site):
    return {
        path.relative_to(site).as_posix(): Reader(path) for path in sorted(site.rglob("*.html"))
    }


def test_every_page_is_well_formed_and_light(site, pages):
    assert set(PAGES) <= set(pages)
    assert len(pages) == 8
    for name in pages:
        assert (site / name).stat().st_size < (300_000 if name == "index.html" else 200_000)


def test_nothing_comes_from_outside_and_nothing_runs(site, pages):
    for name, page in pages.items():
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"script", "style", "iframe", "object", "embed", "image", "base"}, name
        for link in page.all("href") + page.all("src"):
            works = link in WORKS and link not in page.all("src")
            assert link == "data:," or works or not re.match(r"[a-z]+:|//", link), link
        for tag, found in page.elements:
            assert not [key for key in found if key.startswith("on")], (name, tag)
            assert not re.search(r"url\((?!#)", found.get("style") or "")
    sheet = (site / "style.css").read_text("utf-8")
    assert (
        re.findall(r"url\(([^)]*)\)", sheet) == ['"math.woff"'] and (site / "math.woff").is_file()
    )
    assert "@import" not in sheet and "http" not in sheet


def test_every_link_leads_somewhere(site, pages):
    for name, page in pages.items():
        for link in page.all("href"):
            if link == "data:," or link in WORKS:
                continue
            path, _, anchor = unquote(link).partition("#")
            target = ((site / name).parent / path).resolve() if path else site / name
            assert target.is_file(), (name, link)
            if anchor:
                there = pages[target.relative_to(site.resolve() if path else site).as_posix()]
                assert anchor in there.all("id"), (name, link)


def test_identifiers_are_unique_and_references_hit(pages):
    for name, page in pages.items():
        ids = page.all("id")
        assert len(ids) == len(set(ids)), name
        clips = [re.fullmatch(r"url\(#(.+)\)", value)[1] for value in page.all("clip-path")]
        assert set(clips) <= set(ids)


def test_figures_are_named_and_take_the_theme(pages):
    for page in pages.values():
        for tag, found in page.elements:
            if tag == "svg":
                assert found["role"] == "img" and found["aria-label"]
            assert not re.search(r"#(1f6fb4|222221|dcdcda|000000)", found.get("style") or "")
    styles = " ".join(pages["plain-decay/index.html"].all("style"))
    assert "var(--observed)" in styles and "var(--predicted)" in styles and "var(--ink)" in styles
    assert "color-mix(in srgb,var(--observed-mid),var(--observed-far) 34%)" in styles


def test_the_style_sheet_knows_every_colour(site, pages):
    sheet = (site / "style.css").read_text("utf-8")
    used = {
        name
        for page in pages.values()
        for name in re.findall(r"var\((--[\w-]+)\)", " ".join(page.all("style")))
    }
    for name in used:
        assert sheet.count(f"{name}: #") == (2 if name not in ("--paper", "--ink") else 3), name


def test_verdicts_are_words(pages):
    index = pages["index.html"].text
    for words in (
        "1 holds",
        "1 fails",
        "2 inconclusive",
        "1 out of range",
        "1 not run yet",
        "steepest run unrun",
    ):
        assert words in index
    for name, word in (
        ("plain-decay", "holds"),
        ("shifted-decay", "fails"),
        ("growing", "out of range"),
    ):
        assert word in pages[f"{name}/index.html"].text


def test_hostile_text_stays_text(site, pages):
    page = pages["plain-decay/index.html"]
    for text in (
        "<script>alert(1)</script>",
        "<script>alert(2)</script>",
        "<b>markup</b>",
        "<i>page</i>",
        "it <looks>",
    ):
        assert text in page.text
    assert "Decay <of> everything" in page.text


def test_a_page_says_all_there_is(pages):
    text = pages["plain-decay/index.html"].text
    for words in (
        "agrees in 2 challenged checks, 1 rival rejected, 1 control told apart",
        "Theorem",
        "failed by a faster decay, what grows",
        "it never sees the rate",
        "Identities and consistency",
        "would notice",
        "Controls: where the law must not hold",
        "fails, as it must",
        "95% of the mean over 4 seeds",
        "0.45 to 0.55",
        "rate below one",
        "a faster decay",
        "The source prints ρ + 1",
        "what is kept each step",
        "1/step",
        "steepest run plain-decay",
        "jax",
        "result.json",
        "rejected",
        "All runs of this claim",
        "Claim version 1",
    ):
        assert words in text, words
    assert "not rejected" in pages["powerless/index.html"].text
    assert "choose --rate below 1" in pages["growing/index.html"].text
    assert {"math", "mfrac", "msub"} & {
        tag for tag, _ in pages["plain-decay/index.html"].elements
    } >= {"math", "msub"}


def test_a_source_is_a_sentence_with_links_and_a_list_of_works(pages):
    page = pages["plain-decay/index.html"]
    for words in (
        "A lecture, <i>page</i> 3; figure 1 of Cohen et al. 2021 , [@nobody1999], Zinkevich 2003",
        "Jeremy M. Cohen, Simran Kaur, Yuanzhi Li, J. Zico Kolter, Ameet Talwalkar: Gradient Descent on Neural "
        "Networks Typically Occurs at the Edge of Stability. ICLR, 2021. arXiv:2103.00065",
        "Martin Zinkevich: Online Convex Programming and Generalized Infinitesimal Gradient Ascent. ICML, 2003.",
    ):
        assert words in page.text
    assert page.all("href").count("https://arxiv.org/abs/2103.00065") == 2


def test_neighbours_follow_the_catalogue(pages):
    around = [
        (found.get("rel"), found["href"])
        for tag, found in pages["growing/index.html"].elements
        if tag == "a" and "rel" in found
    ]
    assert set(around) == {
        ("prev", "../wide-decay/index.html"),
        ("next", "../powerless/index.html"),
    }


def test_every_real_statement_becomes_mathml():
    """Independent of the small claims: whatever the library states can be set."""
    import ast
    from pathlib import Path

    import steepest
    from steepest.site.pages._formula import formula, split_formula

    for path in (Path(steepest.__file__).parent / "claims").glob("*/**/[a-z]*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "statement":
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    statement = ast.literal_eval(node.value)
                    pieces = split_formula(statement)
                    assert "<math" in formula(statement), path.name
                    assert all("<math" in formula(piece) for piece in pieces), path.name
                    letters = re.sub(r"\\q?quad|\s", "", statement)
                    assert re.sub(r"\\q?quad|\s", "", "".join(pieces)) == letters, path.name
