"""A page as a browser parses it: its tags with attributes, and the text of its sections."""

import base64
import re
from html.parser import HTMLParser

from markupsafe import Markup

from fillrank.report.charts import Chart

SECTIONS = [
    "summary",
    "columns",  # of tables of mixed kinds
    "table",
    "factors",
    "features",  # of models that have any
    "convergence",
    "held-out",
    "certainty",
    "levels",  # of tables with levels
    "maps",
    "reproduce",
]
_OPTIONAL = {"columns", "features", "levels"}
_EMPTY = {"meta"}
# fmt: off
_ALLOWED = {
    "a", "bdi", "body", "caption", "circle", "clippath", "code", "defs", "details", "div",
    "figcaption", "figure", "g", "h1", "h2", "head", "header", "html", "image", "li", "line", "main",
    "meta", "nav", "p", "path", "pre", "rect", "section", "span", "strong", "style", "summary", "svg",
    "table", "tbody", "td", "text", "th", "thead", "title", "tr", "tspan", "ul", "use",
}
# fmt: on
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


# In place of a plot: drawing takes most of the time of a report.
DOT = Chart(Markup('<svg class="chart" viewBox="0 0 1 1" role="img" aria-label="a dot"></svg>'))


class Page(HTMLParser):
    """The contents of a page; ``text`` is by section, without styles."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.sections, self.faults = [], [], [], []
        self.text, self.images = {}, {}
        self.feed(html)
        self.close()
        if self.open:
            self.faults.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag == "section":
            self.sections.append(attrs["id"])
        if tag == "svg" and attrs.get("class") == "chart":
            self.images.setdefault(self.sections[-1], []).append(attrs)
        if tag not in _EMPTY:
            self.open.append(tag)
        self._check(tag, attrs)

    def _check(self, tag, attrs):
        if tag not in _ALLOWED:
            self.faults.append(f"tag {tag}")
        for name, value in attrs.items():
            if name.startswith("on") or name in ("style", "src", "srcset", "action", "xlink:href"):
                self.faults.append(f"attribute {name}")
            if tag == "image" and name == "href" and _is_png(value):
                continue
            if name == "href" and not value.startswith("#"):
                self.faults.append(f"link {value}")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"unexpected </{tag}>")

    def handle_data(self, data):
        if "style" not in self.open and self.sections:
            section = self.sections[-1]
            self.text[section] = self.text.get(section, "") + data

    def handle_comment(self, data):
        self.faults.append(f"comment {data}")

    def policy(self):
        """Whether the policy forbids loading anything, before anything could be loaded."""
        positions = [k for k, (_, attrs) in enumerate(self.tags) if "http-equiv" in attrs]
        return (
            len(positions) == 1
            and self.tags[positions[0]][1]["content"] == _POLICY
            and [tag for tag, _ in self.tags[: positions[0]]] == ["html", "head", "meta"]
        )


def _is_png(uri):
    kind, _, data = uri.partition(",")
    return kind == "data:image/png;base64" and base64.b64decode(data).startswith(b"\x89PNG")


def read(path):
    """Read the page in a file; fail unless it is complete, safe and has all sections."""
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert page.faults == []
    assert page.policy()
    left_out = _OPTIONAL - set(page.sections)
    assert page.sections == [each for each in SECTIONS if each not in left_out]
    text = re.sub(r"data:image/png;base64,[^\"]+", "", html)
    assert text.count("http") == 1  # of http-equiv: no other address
    assert all(image["aria-label"] for images in page.images.values() for image in images)
    return page
