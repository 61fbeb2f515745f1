from html.parser import HTMLParser

import pytest

from unrolled.explain.explanation import Explanation
from unrolled.explain.page import report

VOID = {"meta", "rect", "br"}
STRUCTURE = {"html", "head", "title", "style", "body", "main", "header", "footer", "article", "figure", "div"}
TEXTS = {"h1", "h2", "p", "small", "details", "summary", "dl", "dt", "dd", "svg", "desc", "text"}
ALLOWED = VOID | STRUCTURE | TEXTS | {"table", "thead", "tbody", "tr", "th", "td"}


class Reader(HTMLParser):
    """What a browser would see: elements, attributes and text, and whether every element is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in VOID or (tag == "rect" and not (self.get_starttag_text() or "").endswith("/>")):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in VOID:
            raise AssertionError(f"{tag} closed inside {self.open}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_report_holds_scores_pictures_and_numbers(small: Explanation) -> None:
    scores = {
        "exact_match": {"value": 0.984, "protocol": "500 unseen phrases"},
        "BLEU": 98.24,
        "model": "runs/x",
        "n": 12,
    }
    reader = Reader(report([small, small], scores, "Phrases"))
    text = "\n".join(reader.texts)
    assert reader.open == [] and reader.elements.count("svg") == 2 and reader.elements.count("article") == 2
    for expected in ("Phrases", "2 examples", "exact match", "0.984", "500 unseen phrases", "98.2", "runs/x", "97.0"):
        assert expected in text
    assert text.count("noir: black 60 %") == 2


def test_without_scores_there_is_no_score_heading(small: Explanation) -> None:
    page = report([small])
    assert "Scores" not in page and "One example" in page and "What the model looked at" in page


@pytest.mark.parametrize("title", ["</title><script>alert(1)</script>", "plain"])
def test_no_word_becomes_markup_and_nothing_is_loaded(hostile: Explanation, title: str) -> None:
    bad = "<img src=x onerror=alert(1)>"
    page = report([hostile], {bad: {"value": bad, "protocol": bad}}, title)
    page.encode("utf-8")
    reader = Reader(page)
    assert set(reader.elements) <= ALLOWED and reader.open == []
    names = {name for name, _ in reader.attributes}
    assert not names & {"src", "href", "srcset", "onerror", "onload"}
    assert bad in "\n".join(reader.texts) and "default-src 'none'" in page


def test_it_has_a_dark_side_and_says_its_language(small: Explanation) -> None:
    page = report([small])
    assert "prefers-color-scheme:dark" in page and 'lang="en"' in page and 'name="viewport"' in page
