"""What a browser says of the book's pages: whether any scrolls sideways, how small its words are, what it asks for.

    steepest book --out book
    python benchmarks/book/run.py book [--record]

Every page is loaded at three widths. It needs Chromium; the pages are served from this machine, and only so that one
script may look into them. Nothing else of a page changes by that.
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections import defaultdict
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RECORD = Path(__file__).with_name("record.json")
WIDTHS = (390, 1280, 1920)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LONGEST = 3600  # seconds that the browser may take
SMALL = 9.0  # px, below which words of a figure are hard to read
MEASURE = """<!doctype html><meta charset="utf-8"><body><script>
const SIZE = 8.5;  // of words in a figure that is a file, unless they say otherwise
const ask = async () => {
  const { pages, widths } = await (await fetch("/ask")).json();
  const frame = document.createElement("iframe");
  frame.style.cssText = "border:0;height:900px";
  document.body.append(frame);
  const rows = [];
  for (const page of pages) for (const width of widths) {
    frame.style.width = `${width}px`;
    await new Promise((go) => { frame.onload = go; frame.src = `/${page}`; });
    await new Promise((go) => setTimeout(go, 30));
    const { document: inside, innerWidth } = frame.contentWindow;
    const wide = inside.documentElement.scrollWidth - innerWidth;
    const past = [...inside.querySelectorAll("article *")]
      .filter((part) => part.getBoundingClientRect().right > innerWidth + 1);
    const scrolls = [...inside.querySelectorAll("article table, article .formula, article pre, article .scroll")]
      .filter((part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflowX !== "visible");
    const kinds = {};
    for (const part of scrolls) {
      const heading = part.closest("section, details")?.querySelector("h2, h3, summary")?.textContent.trim() ?? "";
      const kind = `${part.tagName.toLowerCase()}.${part.className} of ${heading}`.slice(0, 70);
      kinds[kind] = (kinds[kind] || 0) + 1;
    }
    const sizes = [...inside.querySelectorAll("figure svg text")]
      .filter((text) => text.textContent.trim() && text.getBoundingClientRect().width > 0)
      .map((text) => parseFloat(frame.contentWindow.getComputedStyle(text).fontSize) * text.getScreenCTM().a)
      .filter((size) => size > 0);
    for (const picture of inside.querySelectorAll('figure img[src$=".svg"]')) {
      if (picture.getBoundingClientRect().width === 0) continue;
      const drawing = new DOMParser().parseFromString(await (await fetch(picture.src)).text(), "image/svg+xml");
      const shown = picture.getBoundingClientRect().width / Number(drawing.documentElement.getAttribute("width"));
      for (const text of drawing.querySelectorAll("text")) {
        if (text.textContent.trim()) sizes.push((parseFloat(text.style.fontSize) || SIZE) * shown);
      }
    }
    const first = past.slice(0, 3).map((part) => part.outerHTML.slice(0, 80));
    rows.push({ page, width, wide: Math.max(0, wide), past: wide > 0 ? first : [], scrolls: kinds,
      smallest: sizes.length ? Math.min(...sizes) : null });
  }
  await fetch("/told", { method: "POST", body: JSON.stringify(rows) });
};
ask();
</script>"""
RAW = re.compile(r"\\\||[\^_]\{|\\(?:frac|sqrt|tfrac|mathrm|lVert|rVert)\b")
"""TeX that was not typeset."""


def main() -> None:
    """Measure every page and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("book", type=Path, help="the folder of a book")
    parser.add_argument("--record", action="store_true", help="write the table of the docs")
    parser.add_argument("--pages", default="**/*.html", help="which pages, as a pattern of paths")
    options = parser.parse_args()
    pages = sorted(
        path.relative_to(options.book).as_posix()
        for path in options.book.glob(options.pages)
        if "_static" not in path.parts
    )
    rows = measured(options.book, pages)
    for row in rows:
        if row["wide"] or row["scrolls"]:
            print(row["width"], row["page"], row["wide"], row["past"], row["scrolls"])
    raw = {page: words for page in pages if (words := unset(options.book / page))}
    for page, words in raw.items():
        print("not typeset:", page, words[:3])
    outside = {page: asked for page in pages if (asked := requests(options.book / page))}
    for page, addresses in outside.items():
        print("asks for:", page, addresses[:3])
    table = summary(rows)
    print(json.dumps(table, indent=1, ensure_ascii=False))
    if options.record:
        record = json.loads(RECORD.read_text("utf-8"))
        table["rows"] = [row for row in table["rows"] if row[0] != "_modules"]  # source code
        record["tables"] = [table]
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def measured(book: Path, pages: list[str]) -> list[dict]:
    """Return what the browser measured of each page at each width."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"no browser: expected one of {', '.join(BROWSERS)} on the path")
    told: list[dict] = []
    came = threading.Event()

    class Handler(SimpleHTTPRequestHandler):
        """Serve the book, the question and the script that asks it."""

        def do_GET(self) -> None:
            if self.path == "/measure":
                self.give(MEASURE, "text/html")
            elif self.path == "/ask":
                self.give(json.dumps({"pages": pages, "widths": WIDTHS}), "application/json")
            else:
                super().do_GET()

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            told.extend(json.loads(self.rfile.read(length)))
            self.give("", "text/plain")
            came.set()

        def give(self, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    def handler(*args: object) -> Handler:
        return Handler(*args, directory=str(book))  # type: ignore[arg-type]

    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=2000,1000",
        ]
        address = f"http://127.0.0.1:{server.server_port}/measure"
        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "--remote-debugging-port=0", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        came.wait(LONGEST)
        process.terminate()
        process.wait()
    server.shutdown()
    if not told:
        raise SystemExit(f"the browser told nothing within {LONGEST} s")
    return told


def unset(page: Path) -> list[str]:
    """Return TeX that a page shows as it was typed."""
    text = page.read_text("utf-8")
    for tag in ("script", "style", "pre", "code", "math", "svg"):
        text = re.sub(rf"<{tag}\b.*?</{tag}>", " ", text, flags=re.DOTALL)
    return RAW.findall(re.sub(r"<[^>]*>", " ", text))


def requests(page: Path) -> list[str]:
    """Return addresses of other machines that a page loads something from."""
    text = page.read_text("utf-8")
    loads = r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:[^\"]+)|<link\b[^>]*\bhref=\"(https?:[^\"]+)"
    return ["".join(pair) for pair in re.findall(loads, text)]


def summary(rows: list[dict]) -> dict:
    """Return the table of the docs: of each kind of page and width what scrolls, and its smallest words."""
    groups = defaultdict(list)
    for row in rows:
        kind = row["page"].split("/")[0] if "/" in row["page"] else "pages at the top"
        groups[kind, row["width"]].append(row)
    lines = []
    for (kind, width), group in sorted(groups.items()):
        sizes = [row["smallest"] for row in group if row["smallest"]]
        lines.append(
            [
                kind,
                width,
                len(group),
                sum(row["wide"] > 0 for row in group),
                sum(bool(row["scrolls"]) for row in group),
                f"{min(sizes):.1f}" if sizes else "–",
                sum(size < SMALL for size in sizes),
            ]
        )
    columns = [
        "kind of page",
        "width [px]",
        "pages",
        "that scroll sideways",
        "with a part that scrolls",
        "smallest words of figures [px]",
        f"pages with words below {SMALL:g} px",
    ]
    return {"columns": columns, "rows": lines}


if __name__ == "__main__":
    main()
