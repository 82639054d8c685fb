"""The search's index in parts: what it knows, and which parts a question loads."""

import json
import re
from pathlib import Path

import pytest

from steepest.site import book as site_book
from steepest.site.book._search import BASE, OTHERS, parts_of, words
from tests.site.book.node import printed

INDEX = {
    "docnames": ["index", "chapters/decay"],
    "filenames": ["index.md", "chapters/decay.md"],
    "titles": ["Front", "How things decay"],
    "alltitles": {"How things decay": [[1, None]]},
    "objects": {},
    "indexentries": {"decay() (in module kit)": [[1, "kit.decay", False]]},
    "titleterms": {"decay": 1},
    "terms": {"rate": [0, 1], "risk": 1, "gradient": 0, "β": 1, "2xor": 0, "0491": 1},
}
QUESTIONS = {
    "rate": {"base", "r"},
    "rate risk": {"base", "r"},
    "gradient rate": {"base", "g", "r"},
    "β": {"base", "others"},
    "adient": "all",  # a piece of a word
    "decay": {"base", "d"},
    "": set(),
}
STUBS = """
const loaded = [];
let index = null;
globalThis.location = { search: "?q=" + encodeURIComponent(QUERY) };
globalThis.Search = {
  _parseQuery: (query) => [query, new Set(query.split(" "))],
  setIndex: (whole) => { index = whole; },
};
globalThis.document = {
  createElement: () => ({}),
  body: {
    append: (script) => {
      const name = script.src.replace(/.*\\/(.*)[.]js$/, "$1");
      loaded.push(name);
      if (PARTS[name]) Search.part(name, PARTS[name]);
      script.onload();
    },
  },
};
LOADER
setTimeout(() => console.log(JSON.stringify([loaded, index])), 20);
"""


def test_words_are_those_that_a_reader_sees():
    html = "<table><tr><td>predicted</td><td>0.4911</td></tr></table><math><mi>x</mi></math><b>a &amp; b</b>"
    assert words(html) == "predicted . a & b"


def test_no_word_is_lost_and_no_number_kept():
    parts = parts_of(INDEX)
    assert set(parts) == {BASE, "d", "g", "r", OTHERS}
    for kind in ("terms", "titleterms"):
        kept = {}
        for name, part in parts.items():
            kept |= {} if name == BASE else part[kind]
        assert kept == {word: pages for word, pages in INDEX[kind].items() if word != "0491"}


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_question_loads_the_parts_that_it_needs(query):
    parts = parts_of(INDEX)
    loader = (Path(site_book.__file__).parent / "search.js").read_text("utf-8")
    names = json.dumps([name for name in parts if name != BASE])
    script = STUBS.replace("LOADER", loader.replace("LETTERS", names))
    script = script.replace("PARTS", json.dumps(parts)).replace("QUERY", json.dumps(query))
    loaded, index = printed(script)
    assert set(loaded) == (set(parts) if QUESTIONS[query] == "all" else QUESTIONS[query])
    assert len(loaded) == len(set(loaded))
    if query:
        assert all(word in index["terms"] for word in query.split() if word in INDEX["terms"])
        assert index["filenames"] == INDEX["docnames"]
        assert index["titles"] == INDEX["titles"]


def test_the_index_of_a_book_has_no_words_of_drawings_and_formulas(book):
    folder = book.index.parent / "searchindex"
    kept = "".join(path.read_text("utf-8") for path in folder.glob("?.js"))
    terms = set(re.findall(r'"([^"]+)":', kept))
    assert {"rival", "theori"} <= terms
    assert not terms & {"frac", "rho", "stroke", "viewbox"}
