"""A page with scores and several heatmaps that needs nothing but itself, and runs no script whatever the words say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from unrolled.explain.lettering import printable
from unrolled.explain.svg import FONTS, svg

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

_STYLE = f"""
:root{{color-scheme:light dark;--paper:#f5f7fa;--card:#fff;--ink:#16212c;--muted:#5f6c79;--line:#dde4eb;--heat:#08509b}}
@media (prefers-color-scheme:dark){{:root{{--paper:#0a0e13;--card:#10161d;--ink:#e7edf3;--muted:#93a1af;--line:#263341;
--heat:#62b0ff}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 {FONTS}}}
main{{max-width:1040px;margin:0 auto;padding:40px 20px 64px}}
h1{{font-size:28px;line-height:1.25;margin:0 0 6px;letter-spacing:-.01em}}
h2{{font-size:14px;margin:36px 0 12px;color:var(--muted);font-weight:600}}
.lead{{color:var(--muted);margin:0;max-width:46em}}
.scores{{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:12px;padding:0;margin:0}}
.scores div,article{{background:var(--card);border:1px solid var(--line);border-radius:12px}}
.scores div{{padding:14px 16px}}
.scores dt{{color:var(--muted);font-size:13px}}
.scores dd{{margin:0;font-size:26px;font-weight:600;color:var(--heat);font-variant-numeric:tabular-nums}}
.scores small{{display:block;color:var(--muted);font-size:12px;font-weight:400;line-height:1.4;overflow-wrap:anywhere}}
article{{margin:0 0 20px;overflow:hidden}}
article header{{padding:16px 22px 12px;border-bottom:1px solid var(--line)}}
article p{{margin:0;overflow-wrap:anywhere}}
.source{{color:var(--muted)}} .target{{font-size:19px;font-weight:600}}
figure{{margin:0;overflow-x:auto}} figure svg{{display:block}}
details{{border-top:1px solid var(--line);padding:10px 22px;font-size:14px}}
summary{{cursor:pointer;color:var(--muted)}}
.table{{overflow-x:auto}}
table{{border-collapse:collapse;margin:10px 0;font-variant-numeric:tabular-nums}}
th,td{{padding:3px 9px;text-align:right;border-bottom:1px solid var(--line);font-weight:400}}
th{{color:var(--muted)}}
footer{{margin-top:36px;color:var(--muted);font-size:13px}}
""".strip()


def report(explanations: Sequence[Explanation], scores: Mapping[str, Any] | None = None, title: str = "") -> str:
    """One HTML page. A score is a number, a text, or a mapping with ``value`` and ``protocol``."""
    heading = "One example" if len(explanations) == 1 else f"{len(explanations)} examples"
    lead = (
        "Each row is a word of the output, each column a word of the input. The stronger a cell, the more the model "
        "drew on that input word when it wrote the output word. Hover over a cell for its number."
    )
    articles = "".join(_article(explanation) for explanation in explanations)
    body = f"{_scores(scores or {})}\n<h2>{heading}</h2>\n{articles}"
    return page(printable(title) or "What the model looked at", lead, body)


def page(title: str, lead: str, body: str) -> str:
    """A page around ``body``, which is HTML."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(title)}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<main>
<h1 dir="auto">{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{body}
<footer>Made with unrolled. This page is complete in itself and loads nothing.</footer>
</main>
</body>
</html>
"""


def _scores(scores: Mapping[str, Any]) -> str:
    if not scores:
        return ""
    entries = []
    for name, score in scores.items():
        value, protocol = (score.get("value"), score.get("protocol", "")) if isinstance(score, Mapping) else (score, "")
        small = f"<small>{_words(protocol)}</small>" if protocol else ""
        entries.append(
            f"<div><dt>{_words(str(name).replace('_', ' '))}</dt><dd>{_words(_number(value))}{small}</dd></div>"
        )
    return f'<h2>Scores</h2>\n<dl class="scores">\n{"".join(entries)}\n</dl>'


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}".rstrip("0").rstrip(".")


def _article(explanation: Explanation) -> str:
    return f"""<article>
<header><p class="source" dir="auto">{_words(explanation.source_text)}</p>
<p class="target" dir="auto">{_words(explanation.target_text)}</p></header>
<figure tabindex="0">{svg(explanation)}</figure>
<details><summary>The numbers, in per cent</summary><div class="table">{_table(explanation)}</div></details>
</article>
"""


def _table(explanation: Explanation) -> str:
    head = "".join(f'<th scope="col">{_words(word)}</th>' for word in explanation.source)
    rows = []
    for word, weights in zip(explanation.target, explanation.weights, strict=True):
        cells = "".join(f"<td>{100 * float(weight):.1f}</td>" for weight in weights)
        rows.append(f'<tr><th scope="row">{_words(word)}</th>{cells}</tr>')
    return f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _words(text: Any) -> str:
    return escape(printable(str(text)))
