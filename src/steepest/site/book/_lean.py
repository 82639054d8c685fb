"""Pages and sheets without letters that no browser needs."""

import re

_KEPT = re.compile(r"<(pre|code|script|style|textarea|svg)\b.*?</\1>", re.DOTALL)
"""Parts whose spaces are as they must be."""


_COLOURS_OF_CODE = re.compile(r"<link [^>]*pygments\.css[^>]*>\n?")
"""The sheet that colours code, which a page without code does not need."""


_TOYS = re.compile(r"<script [^>]*toys\.js[^>]*></script>\n?")
"""The script of the toys, which a page without one does not need."""


def lean_page(text: str) -> str:
    r"""Return a page with one space or line break where there are several, and without the source of set formulas.

    >>> lean_page('<p>a  \n b <code>c  d</code></p>')
    '<p>a\nb <code>c  d</code></p>'
    >>> lean_page('<math display="inline" alttext="x^2"><mi>x</mi></math>')
    '<math><mi>x</mi></math>'
    """
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


def _lean(text: str) -> str:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'(<math\b[^>]*?) alttext="[^"]*"', r"\1", text)
    text = text.replace('<math display="inline">', "<math>").replace(' internal"', '"')
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
    r"""Return a script without comments that have lines of their own.

    >>> lean_script("/* one\n two */\na = 1; /* b */\n\n")
    'a = 1; /* b */\n'
    """
    return re.sub(
        r"\n{2,}", "\n", re.sub(r"^/\*.*?\*/\n", "", text, flags=re.DOTALL | re.MULTILINE)
    )


def lean_sheet(text: str) -> str:
    r"""Return a style sheet without comments and line breaks.

    >>> lean_sheet("/* a */\na > b { color: red; }\n\n@media print {\n  c { d: e; } }")
    'a > b{color: red}@media print{c{d: e}}'
    """
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" ?([{};]) ?", r"\1", text)
    return text.replace(";}", "}").strip()
