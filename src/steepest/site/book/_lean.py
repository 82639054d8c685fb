"""Pages and sheets without letters that no browser needs."""

import re

_KEPT = re.compile(r"<(pre|code|script|style|textarea|svg)\b.*?</\1>", re.DOTALL)
"""Parts whose spaces are as they must be."""


_COLOURS_OF_CODE = re.compile(r"<link [^>]*pygments\.css[^>]*>\n?")
"""The sheet that colours code, which a page without code does not need."""


_TOYS = re.compile(r"<script [^>]*toys\.js[^>]*></script>\n?")
"""The script of the toys, which a page without one does not need."""


_CLOSED = '<li class="toctree-l1 has-children">'
"""Where the menu names a page with pages below it, none of which is being read."""
LONG_MENU = 10
"""From so many pages on the menu leads to their list, and does not hold it on every page of the book."""


def lean_page(text: str) -> str:
    r"""Return a page with one space or line break where there are several, and without the source of set formulas.

    Long lists of the menu that are closed are left out as well.

    >>> lean_page('<p>a  \n b <code>c  d</code></p>')
    '<p>a\nb <code>c  d</code></p>'
    >>> lean_page('<math display="inline" alttext="x^2"><mi>x</mi></math>')
    '<math><mi>x</mi></math>'
    """
    text = lean_menu(text)
    parts = []
    start = 0
    for kept in _KEPT.finditer(text):
        parts.append(_lean(text[start : kept.start()]))
        parts.append(_lean_drawing(kept[0]) if kept[1] == "svg" else kept[0])
        start = kept.end()
    parts.append(_lean(text[start:]))
    lean = "".join(parts)
    if 'class="highlight' not in text:
        lean = _COLOURS_OF_CODE.sub("", lean)
    return lean if "data-toy" in text else _TOYS.sub("", lean)


def lean_menu(text: str) -> str:
    """Return a page whose menu names no pages of long lists that are closed, but only the page of the list."""
    pieces = text.split(_CLOSED)
    return "".join([pieces[0], *map(_without_long_list, pieces[1:])])


def _without_long_list(entry: str) -> str:
    """Return an entry of the menu, and what comes after it, without its list if that is long."""
    link = entry.index("</a>") + len("</a>")
    opens = entry.index("<ul>", link)
    depth = 0
    for tag in re.finditer(r"<(/?)ul\b[^>]*>", entry[opens:]):
        depth += -1 if tag[1] else 1
        if depth == 0:
            closes = opens + tag.end()
            break
    else:
        return f"{_CLOSED}{entry}"
    if entry.count("<li", opens, closes) < LONG_MENU:
        return f"{_CLOSED}{entry}"
    return f'<li class="toctree-l1">{entry[:link]}{entry[closes:]}'


def _lean(text: str) -> str:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'(<math\b[^>]*?) alttext="[^"]*"', r"\1", text)
    text = (
        text.replace('<math display="inline">', "<math>")
        .replace(' internal"', '"')
        .replace('"number reference external"', '"number"')
    )
    text = re.sub(r"\s*\n\s*", "\n", text)
    text = re.sub(r"(<(?:ul|ol|tr|thead|tbody|table|dl|div|section|aside)\b[^>]*>)\n", r"\1", text)
    text = re.sub(
        r"\n(</?(?:ul|ol|li|tr|td|th|thead|tbody|table|dl|dt|dd|div|section|aside)\b)", r"\1", text
    )
    return re.sub(r"[ \t]{2,}", " ", text)


def _lean_drawing(text: str) -> str:
    """Return a drawing without spaces between its elements; between words they stay."""
    return text if "<text" in text else re.sub(r">\s+<", "><", text)


def lean_script(text: str) -> str:
    r"""Return a script without comments that have lines of their own, and without empty lines.

    >>> lean_script("/* one\n two */\na = 1; /* b */\n\n  // three\nb = 2;\n")
    'a = 1; /* b */\nb = 2;\n'
    """
    text = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^[ \t]*//.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\n\s*\n", "\n", text)


_OF_CODE = re.compile(r"([^{}]*\.highlight) (\.\w+)\{([^{}]*)\}")
"""A rule for one kind of words in code."""


def lean_code_sheet(text: str) -> str:
    r"""Return a lean sheet of code's colours in which kinds of words with one colour share a rule.

    A word has one kind, so that the order of these rules does not matter.

    >>> lean_code_sheet(".highlight .c{color: red}.highlight .k{top: 0}.highlight .s{color: red}")
    '.highlight :is(.c,.s){color: red}.highlight .k{top: 0}'
    """
    kinds: dict[tuple[str, str], list[str]] = {}
    for rule in _OF_CODE.finditer(text):
        kinds.setdefault((rule[1], rule[3]), []).append(rule[2])

    def once(rule: re.Match[str]) -> str:
        alike = kinds.pop((rule[1], rule[3]), [])
        if len(alike) < 2:
            return f"{rule[1]} {alike[0]}{{{rule[3]}}}" if alike else ""
        return f"{rule[1]} :is({','.join(alike)}){{{rule[3]}}}"

    return _OF_CODE.sub(once, text)


def lean_sheet(text: str) -> str:
    r"""Return a style sheet without comments and line breaks.

    >>> lean_sheet("/* a */\na > b { color: red; }\n\n@media print {\n  c { d: e; } }")
    'a > b{color: red}@media print{c{d: e}}'
    """
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" ?([{};]) ?", r"\1", text)
    return text.replace(";}", "}").strip()
