import re
from html.parser import HTMLParser

import pytest
import yaml
from huggingface_hub import ModelCard
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from unrolled.ship.card import Facts, PartLine, ScoreLine, TrustLine, card

FULL = Facts(
    name="runs/phrases",
    task="translate",
    commands=["unrolled predict {} lines.txt", "unrolled explain {} 'one line'"],
    python="predict(['one line'])",
    tags=["sequence-to-sequence", "rnn"],
    pipeline="translation",
    languages=["en", "fr"],
    licence="cc-by-4.0",
    data={
        "file": "pairs.tsv",
        "columns": ("source", "target"),
        "rows": {"train": 29000, "test": 500},
        "mean length": 7.25,
    },
    parts=[PartLine("encoder", "lstm, two directions", 1_200_000, "4(mn + n² + n)"), PartLine("output", "", 34_567)],
    training={"time": "101 s", "steps": 2000, "seed": 1, "bfloat16": True},
    scores=[
        ScoreLine("BLEU", 37.2345, "sacreBLEU nrefs:1|case:mixed"),
        ScoreLine("exact match", 0.98),
        ScoreLine("x", float("nan")),
    ],
    test_data="test.tsv, 500 rows",
    trust=[TrustLine("86 %", "8 %", "For 86 % of the words …")],
    examples=[("the black cat", "le chat noir")],
    limits=["Sentences of more than 30 words were never seen."],
)
HOSTILE = [
    "a | b", "<script>alert(1)</script>", "[x](javascript:alert(1))", "`code` ```", "*bold* _it_ ~~no~~", "&lt; &amp;",
    "# head", "- item", "1. one", "---", "$x$", "a\nb", "\ud800", "![i](u)", "\\", "+ plus", "= 5", "> quote",
]  # fmt: skip
HARMLESS = {"h1", "h2", "p", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong"}


class Text(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in ("td", "th", "li", "h1", "p"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def rendered(text: str) -> Text:
    body = text.split("---\n", 2)[2]
    return Text(MarkdownIt("commonmark").enable("table").render(body))


def front(text: str) -> dict:
    return yaml.safe_load(text.split("---\n", 2)[1])


def test_the_card_says_everything_that_is_known() -> None:
    text = card(FULL)
    cells = rendered(text).cells
    for expected in (
        "37.23", "sacreBLEU nrefs:1|case:mixed", "0.98", "train 29,000, test 500", "source, target", "7.25",
        "1,200,000", "4(mn + n² + n)", "1,234,567", "101 s", "True", "86 %", "8 %", "le chat noir", "cc-by-4.0",
        "On test.tsv, 500 rows.", "Sentences of more than 30 words were never seen.",
    ):  # fmt: skip
        assert expected in cells, expected
    assert "A sequence model with 1,234,567 parameters" in text
    assert "unrolled predict runs/phrases lines.txt" in text and "unrolled explain runs/phrases" in text
    assert re.findall(r"^## (.*)", text, re.M) == [
        "Use", "Examples", "Scores", "How far to trust its attention", "Data", "Parts", "Training", "Limits", "Licence",
    ]  # fmt: skip


def test_the_hub_reads_its_front_matter() -> None:
    data = ModelCard(card(FULL)).data
    assert (data.license, data.language, data.library_name, data.pipeline_tag) == (
        "cc-by-4.0",
        ["en", "fr"],
        "unrolled",
        "translation",
    )
    assert data.metrics == ["bleu", "exact_match"] and "unrolled" in data.tags
    assert [(one.metric_type, one.metric_value, one.dataset_name) for one in data.eval_results] == [
        ("bleu", 37.2345, "test.tsv, 500 rows"),
        ("exact_match", 0.98, "test.tsv, 500 rows"),
    ]


def test_a_bare_card_leaves_out_what_is_not_known() -> None:
    text = card(Facts(name="m", task="tag"))
    assert re.findall(r"^## (.*)", text, re.M) == ["Use", "Scores", "Limits", "Licence"]
    assert "license" not in front(text) and "model-index" not in front(text) and "language" not in front(text)
    assert "None were taken" in text and "Not chosen yet" in text and "unrolled explain" not in text
    assert ModelCard(text).data.library_name == "unrolled"


@pytest.mark.parametrize("word", HOSTILE)
def test_no_word_becomes_markup(word: str) -> None:
    text = card(
        Facts(task="tag", name=word, summary=word, data={word: word},
              examples=[(word, word)], limits=[word], test_data=word,
              scores=[ScoreLine(word, 1.0, word)], trust=[TrustLine(word, word, word)],
              parts=[PartLine(word, word, 1, word)])
    )  # fmt: skip
    text.encode("utf-8")
    page = rendered(text)
    assert page.tags <= {
        "h1",
        "h2",
        "p",
        "pre",
        "code",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "strong",
    }
    shown = " ".join(word.replace("\ud800", "\ufffd").split())
    assert page.cells.count(shown) >= 11, page.cells
    assert yaml.safe_load(text.split("---\n", 2)[1])["model-index"][0]["name"] == shown


@given(st.text(st.characters(codec=None), max_size=15))
@settings(max_examples=40, deadline=None)
def test_any_words_leave_the_card_whole(word: str) -> None:
    text = card(
        Facts(
            name=word,
            task="translate",
            summary=word,
            licence="mit",
            test_data=word,
            examples=[(word, word)],
            scores=[ScoreLine(word, 1.0)],
        )
    )
    text.encode("utf-8")
    assert re.findall(r"^## (.*)", text, re.M) == ["Use", "Examples", "Scores", "Limits", "Licence"]
    assert front(text)["license"] == "mit" and ModelCard(text).data.license == "mit"
    assert rendered(text).tags <= HARMLESS


def test_commands_survive_a_strange_folder_name() -> None:
    text = card(Facts(task="translate", commands=["unrolled predict {} lines.txt"], name="my model'; rm -rf ~ ```"))
    assert "unrolled predict 'my model'\"'\"'; rm -rf ~ ```' lines.txt" in text
    assert "````sh\n" in text
