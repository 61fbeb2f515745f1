"""A trained language model: how probable a text is, and how one goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.protocol import END, UNKNOWN
from unrolled.data.documents import Piece, is_plain
from unrolled.data.parts import Part
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.search import SearchSettings
from unrolled.tasks.generation import Generated, generate, lead_in, unknown_in
from unrolled.tasks.language_model import LanguageModelling
from unrolled.tasks.language_scores import Amount, Tally, amount_of, log_probs
from unrolled.workshop import arguments
from unrolled.workshop.embedding import line_vectors
from unrolled.workshop.language_promises import check_promises
from unrolled.workshop.ngrams import ngram_scores
from unrolled.workshop.plan import Plan
from unrolled.workshop.promises import Promise
from unrolled.workshop.resting import explain_text
from unrolled.workshop.seeing import check_line

if TYPE_CHECKING:
    from torch import nn

    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.scores import Score
    from unrolled.text.running import RunningText

TOGETHER = 1024
"""Documents that are scored together: memory does not grow with the file."""


class Scored(NamedTuple):
    """A line or a text, as the model finds it."""

    text: str
    tokens: list[str]
    log_probs: np.ndarray  # float64 [tokens], natural log
    amount: Amount
    place: int = 1  # the 1-based line where it stands

    @property
    def log_prob(self) -> float:
        return float(self.log_probs.sum())

    @property
    def perplexity(self) -> float:
        """A symbol."""
        return float(np.exp(min(700.0, -self.log_probs.mean()))) if len(self.log_probs) else 1.0


@TRAINED.register("language_model")
class LanguageModel(Model):
    """A trained language model: ``generate``, ``complete``, ``score``, ``evaluate``, ``explain``, ``embed``."""

    task: LanguageModelling
    lacks = {"predict": "it goes on from a text: generate"}

    def __init__(self, plan: Plan, text: RunningText, network: nn.Module, *, device: str = "auto") -> None:
        from unrolled.models.stepper import TorchStepper

        super().__init__(plan, text, network, device=device)
        self.engine = TorchStepper(self.network, self.device, trained=True)
        self.search = SearchSettings(**plan.settings["search"])

    # --- text that goes on ----------------------------------------------------------------------------------------

    def generate(
        self,
        prompt: str = "",
        *,
        length: int = 200,
        samples: int = 1,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> list[Generated]:
        """``samples`` drawn continuations of ``prompt``, each of at most ``length`` symbols.

        A sample ends where the text ends, or before the first of the ``stop`` texts. See `SearchSettings` for
        ``temperature`` (above 0), ``top_k`` (0: all) and ``top_p`` in (0, 1]; a sample depends on the seed and its
        number alone.
        """
        prompt = arguments.text("generate", "prompt", prompt)
        search = replace(
            self.search,
            kind="sampling",
            nbest=arguments.count("generate", "samples", samples),
            max_length=arguments.count("generate", "length", length),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            ban_unknown=True,
        )
        return self.continuations([prompt], search, stop)[0]

    def complete(
        self, prompt: str, count: int = 5, *, length: int = 10, beam: int | None = None, stop: Sequence[str] = ()
    ) -> list[Generated]:
        """The ``count`` likeliest continuations of ``prompt`` by at most ``length`` symbols, the likeliest first.

        Those that end before come first. ``beam`` is how many beginnings are kept; 2 × count if None.
        """
        prompt = arguments.text("complete", "prompt", prompt)
        count = arguments.count("complete", "count", count)
        search = replace(
            self.search,
            kind="beam",
            beam=max(count, beam or 2 * count),
            nbest=count,
            max_length=arguments.count("complete", "length", length),
            length_penalty=0.0,
            ban_unknown=True,
        )
        return self.continuations([prompt], search, stop)[0]

    def continuations(
        self, prompts: Sequence[str], search: SearchSettings, stop: Sequence[str] = ()
    ) -> list[list[Generated]]:
        """What ``search`` finds after each prompt."""
        prompts = arguments.texts("generate", "prompts", prompts)
        stops = arguments.texts("generate", "stop", stop)
        return generate(self.engine, self.text, prompts, search, stops=stops, ends=self.task.ends)

    def explain(self, text: str) -> Explanation:
        """On which earlier words each word rests: what of its probability goes when one of them is erased.

        DataError for an empty text.
        """
        check_line(arguments.text("explain", "text", text))
        return explain_text(self.network, self.text, text, ends=self.task.ends, device=self.device)

    def embed(self, lines: Sequence[str]) -> np.ndarray:
        """Float32 [lines, size]: the mean of what the model knows after each symbol of a line, a text of its own."""
        lines = arguments.texts("embed", "lines", lines)
        rows = [lead_in(self.text, line, ends=self.task.ends) for line in lines]
        return line_vectors(self.network, rows, device=self.device)

    # --- numbers --------------------------------------------------------------------------------------------------

    def score(self, texts: Sequence[str]) -> list[Scored]:
        """Natural-log probability of each symbol of each text, which is a document of its own (see `lead_in`)."""
        texts = arguments.texts("score", "texts", texts)
        ends = self.task.ends
        documents = [[*lead_in(self.text, text, ends=ends), *[END][:ends]] for text in texts]
        found = log_probs(self.network, documents, device=self.device, lead=1 if ends else 2)
        return [
            self._scored(text, document[-len(said) :] if len(said) else [], said, ends=int(ends))
            for text, document, said in zip(texts, documents, found, strict=True)
        ]

    def evaluate(self, texts: Sequence[str]) -> list[Score]:
        """Loss, perplexity a symbol and a word, bits a character of some texts, each a document of its own."""
        return self._tally(self.score(texts)).scores(self.text.tokenizer.kind)

    def lines(self, part: Part) -> Iterator[Scored]:
        """Every line of a part (or piece of a very long one), read on as the task's ``documents`` have it."""
        held: list[list[tuple[Piece, list[int]]]] = []
        for piece, ids in self.task.encoded(part, self.text):
            if piece.begins:
                if len(held) >= TOGETHER:
                    yield from self._lines(held)
                    held = []
                held.append([])
            held[-1].append((piece, ids))
        yield from self._lines(held)

    def _lines(self, documents: list[list[tuple[Piece, list[int]]]]) -> Iterator[Scored]:
        whole = [[one for _, ids in document for one in ids] for document in documents]
        for document, said in zip(documents, log_probs(self.network, whole, device=self.device), strict=True):
            at = 0
            for number, (piece, ids) in enumerate(document):
                symbols = ids[number == 0 :]  # BEGIN is not predicted
                ends = int(bool(symbols) and symbols[-1] == END)
                yield self._scored(piece.text, symbols, said[at : at + len(symbols)], ends=ends, place=piece.place)
                at += len(symbols)

    def _scored(self, text: str, ids: Sequence[int], said: np.ndarray, *, ends: int, place: int = 1) -> Scored:
        amount = amount_of(self.text.normalize(text), ids, UNKNOWN, ends=ends)
        return Scored(text, self.text.tokens(ids), said, amount, place)

    def _tally(self, found: Iterable[Scored]) -> Tally:
        tally = Tally()
        for one in found:
            tally.add(one.log_prob, one.amount)
        return tally

    # --- after training -------------------------------------------------------------------------------------------

    def test(self, part: Part) -> Tested:
        tally = self._tally(self.lines(part))
        return Tested(tally.scores(self.text.tokenizer.kind), tally.count)

    def promises(self, file: str | None, count: int) -> list[Promise]:
        from itertools import islice

        from unrolled.data.lines import lines_of

        return check_promises(self, list(islice(lines_of(file), count)) if file else None, count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_generate(
        self,
        prompt: str,
        *,
        length: int | None = None,
        samples: int = 1,
        likeliest: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: list[str] | None = None,
        precision: str = "float32",
    ) -> Iterator[Shown]:
        """Drawn continuations, or the likeliest ones; a result each. ``precision`` as in `computing`."""
        model = self.computing(precision)
        drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        chosen: dict[str, Any] = {name: value for name, value in drawn.items() if value is not None}
        if likeliest is None:
            found = model.generate(prompt, length=length or 200, samples=samples, stop=stop or (), **chosen)
        elif chosen or samples > 1:
            name = next(iter(chosen), "samples").replace("_", "-")
            raise UsageError(f"generate: --{name} is for samples, --likeliest for what is found. Give one of them.")
        else:
            found = model.complete(prompt, likeliest, length=length or 10, stop=stop or ())
        remark = unknown_in(self.text, prompt)
        for number, one in enumerate(found):
            shown = f"{one.log_prob:.4f}\t{prompt}{one.text}" if likeliest is not None else prompt + one.text
            tree = {
                "number": number,
                "prompt": prompt,
                "text": one.text,
                "log_prob": one.log_prob,
                "tokens": one.tokens,
                "finished": one.finished,
            }
            yield Shown(shown, tree, (remark,) if remark and not number else ())

    def show_explain(self, line: str) -> Explanation:
        return self.explain(line)

    def show_score(self, part: Part, *, tokens: bool = False) -> Iterator[Shown]:
        """One result a line, blank ones too, then one of all."""
        tally, done = Tally(), 0
        for one in self.lines(part):
            yield from _blank(part, done, one.place - 1)
            done = one.place
            tally.add(one.log_prob, one.amount)
            row: dict[str, Any] = {
                "line": one.place - 1,
                "log_prob": one.log_prob,
                "symbols": one.amount.symbols,
                "perplexity": one.perplexity,
            }
            if tokens:
                row["tokens"] = [[name, float(said)] for name, said in zip(one.tokens, one.log_probs, strict=True)]
            yield Shown(f"{one.log_prob:.4f}\t{one.amount.symbols}\t{one.perplexity:.4f}", row)
        yield from _blank(part, done, max(row.place for row in part.rows()))
        scores = tally.scores(self.text.tokenizer.kind)
        total: dict[str, Any] = {"log_prob": tally.log_prob, "lines": tally.count}
        total |= {score.name: score.value for score in scores} | {"protocol": scores[0].protocol}
        yield Shown("", total, tuple(f"{one.name} {one.value:.4f} ({one.protocol})" for one in scores))

    def show_evaluate(self, part: Part, *, compare: Model | None = None, ngram: str | None = None) -> Evaluated:
        """Perplexities; beside them another model's, or those of an n-gram model learnt on the text ``ngram``."""
        tested = self.test(part)
        rows = [{"model": "this", **{score.name: score.value for score in tested.scores}}]
        if compare is not None:
            if not isinstance(compare, LanguageModel):
                raise UsageError(f"evaluate: --compare is a model of the task '{compare.kind}', this one of text.")
            rows.append({"model": "other", **{score.name: score.value for score in compare.test(part).scores}})
        if ngram is not None:
            rows.append(
                {
                    "model": "n-gram",
                    **{score.name: score.value for score in ngram_scores(self.task, self.text, part, ngram)},
                }
            )
        tables = {"compare": ("Side by side (by symbol: of each model's own; by word and character: alike)", rows)}
        return Evaluated(tested.scores, tested.rows, tables=tables if len(rows) > 1 else {})


def _blank(part: Part, first: int, last: int) -> Iterator[Shown]:
    """Results of the lines ``first`` to ``last`` (0-based), which stand between documents of plain text."""
    for line in range(first, last if is_plain(part) else first):
        yield Shown("0.0000\t0\t1.0000", {"line": line, "log_prob": 0.0, "symbols": 0, "perplexity": 1.0})
