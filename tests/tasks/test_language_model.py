"""The task: states go on and gradients do not, documents are strangers to each other, scores add up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.protocol import BEGIN, END, UNKNOWN
from unrolled.data.documents import pieces
from unrolled.data.parts import Part
from unrolled.data.readers import open_table
from unrolled.models import LanguageModel
from unrolled.tasks import TASKS, language_scores
from unrolled.tasks.language_model import LanguageModelling
from unrolled.tasks.language_scores import Amount, amount_of, log_probs, perplexities
from unrolled.text.running import LINE, RunningText
from unrolled.train.gradients import Gradients
from unrolled.workshop.plan import plan

TEXT = "one two three\n\ntwo two one\nthree\n\n\none\n"


def part(folder: Path, text: str = TEXT, name: str = "a.txt", kind: str | None = "running") -> Part:
    path = folder / name
    path.write_text(text)
    return Part(open_table(path, format=kind), (0,))


def task(**settings: Any) -> LanguageModelling:
    found = TASKS.build({"kind": "language_model", **settings})
    assert isinstance(found, LanguageModelling)
    return found


def network(size: int = 12, **settings: Any) -> LanguageModel:
    torch.manual_seed(0)
    history = {"kind": "rnn", "cell": {"kind": "gru", "hidden_size": 5}, "layers": 2}
    model = LanguageModel(size, **{"embedding_size": 3, "dropout": 0.0, "history": history} | settings)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
    return model


# --- text into documents


@pytest.mark.parametrize(
    ("documents", "wanted"),
    [
        ("file", [["one two three\n", "\n", "two two one\n", "three\n", "\n", "\n", "one\n"]]),
        ("blank_line", [["one two three"], ["two two one\n", "three"], ["one"]]),
        ("line", [["one two three"], ["two two one"], ["three"], ["one"]]),
    ],
)
def test_documents_are_what_the_setting_says(tmp_path, documents, wanted):
    found: list[list[str]] = []
    ends = []
    for piece in pieces(part(tmp_path), documents):
        found += [[]] if piece.begins else []
        found[-1].append(piece.text)
        ends += [piece.ends]
    assert found == wanted
    assert sum(ends) == (0 if documents == "file" else len(wanted))


def test_a_row_of_a_table_is_a_document_with_its_lines(tmp_path):
    rows = part(tmp_path, '{"text": "one\\ntwo"}\n{"text": "three"}\n', "a.jsonl", None)
    assert [piece.text for piece in pieces(rows, "file")] == ["one\ntwo", "three"]
    text = RunningText.learn(
        {"tokenizer": {"kind": "word", "min_count": 1}}, lambda: (row.fields for row in rows.rows())
    )
    encoded = [ids for _, ids in task().encoded(rows, text)]
    assert [ids[0] for ids in encoded] == [BEGIN, BEGIN] and encoded[0][2] == LINE
    assert END not in encoded[0]  # the ends of documents are learnt where they are told apart
    assert [ids[-1] for _, ids in task(documents="line").encoded(rows, text)] == [END, END]


@pytest.mark.parametrize("documents", ["file", "blank_line", "line"])
@pytest.mark.parametrize("cut", [7, 1 << 16])
def test_a_very_long_line_is_cut_and_stays_one(tmp_path, monkeypatch, documents, cut):
    from unrolled.data import formats

    monkeypatch.setattr(formats, "PIECE", cut)
    text = "".join(f"word{number} " for number in range(300)) + "end\nnext\n"
    found = list(pieces(part(tmp_path, text), documents))
    assert "".join(piece.text for piece in found).replace("\n", "") == text.replace("\n", "")
    assert sum(piece.begins for piece in found) == (2 if documents == "line" else 1)
    assert max(len(piece.text) for piece in found) <= max(cut, 1 << 16) and (len(found) > 100) == (cut == 7)


def test_the_last_lines_are_held_out_and_documents_stay_whole(tmp_path):
    lines = part(tmp_path, "".join(f"line {number}\n" + "\n" * (number % 5 == 4) for number in range(50)))
    data = {"valid_share": 0.2, "valid_rows": 100}
    train, valid, said = task().divide(lines, data)
    whole = [row.fields[0] for row in lines.rows()]
    assert [row.fields[0] for row in train.rows()] + [row.fields[0] for row in valid.rows()] == whole
    assert len(list(valid.rows())) == 12 and "the last 12 of 60 lines are held out" in said
    train, valid, _ = task(documents="blank_line").divide(lines, data)
    assert [row.fields[0] for row in train.rows()][-1] == "\n"
    assert len(list(pieces(train, "blank_line"))) + len(list(pieces(valid, "blank_line"))) == 50
    with pytest.raises(DataError, match=r"b.txt: 1 line, and some must be held out .* --valid"):
        task().divide(part(tmp_path, "one", "b.txt"), data)


# --- training


def streams(store_of: Any, folder: Path, text: RunningText, **settings: Any) -> Any:
    made = task(steps=3, **settings)
    stored = made.store(folder / "store", store_of, text, "")
    tree = {"train": {"batch_sentences": 2, "batch_tokens": None, "seed": 1}}
    return made, made.batches(stored, tree, train=False, name="a.txt")


@pytest.fixture
def words(tmp_path) -> RunningText:
    rows = part(tmp_path)
    return RunningText.learn(
        {"tokenizer": {"kind": "word", "min_count": 1}}, lambda: (row.fields for row in rows.rows())
    )


@pytest.mark.parametrize("documents", ["file", "blank_line", "line"])
def test_an_epoch_read_in_pieces_costs_what_whole_documents_cost(tmp_path, words, documents):
    text = part(tmp_path, TEXT * 3, "b.txt")
    made, batches = streams(text, tmp_path, words, documents=documents)
    batches.streams, batches.length, batches.turns = 1, batches.size, -(-batches.size // 3)  # no stream begins midway
    model, carried, total, count = network(words.vocabulary_size).eval(), {}, 0.0, 0
    with torch.no_grad():
        for rows in batches.plan(0):
            loss = made.loss(model, batches.load(rows), carried=carried)
            total, count = total + float(loss.total), count + loss.count
    whole: list[list[int]] = []
    for piece, ids in made.encoded(text, words):
        whole += [[]] if piece.begins else []
        whole[-1] += ids
    said = log_probs(model, whole)
    assert count == sum(map(len, said)) == sum(len(one) - 1 for one in whole)
    assert total == pytest.approx(-sum(float(one.sum()) for one in said), rel=1e-5)


def test_gradients_stop_where_a_piece_begins(tmp_path, words):
    made, batches = streams(part(tmp_path, TEXT * 3, "b.txt"), tmp_path, words)
    model, carried = network(words.vocabulary_size).double(), {}
    first, second = (batches.load(rows) for rows in batches.plan(0)[:2])
    made.loss(model, first, carried=carried)
    assert carried and not any(tensor.requires_grad for tensor in carried.values())
    found = torch.autograd.grad(made.loss(model, second, carried=carried).total, list(model.parameters()))

    def by_hand(*, cut: bool) -> tuple[torch.Tensor, ...]:
        _, state = model.loss(first.ids, first.mask, first.targets, model.initial(2))
        state = tuple(tensor.detach() for tensor in state) if cut else state
        total, _ = model.loss(second.ids, second.mask, second.targets, state)
        return torch.autograd.grad(total, list(model.parameters()))

    for one, other in zip(found, by_hand(cut=True), strict=True):
        assert torch.allclose(one, other, atol=1e-10)
    weight = [name for name, _ in model.named_parameters()].index("history.stacks.0.cells.0.hidden_weight")
    assert not torch.allclose(found[weight], by_hand(cut=False)[weight], atol=1e-6)


def test_a_document_does_not_see_the_one_before(tmp_path, words):
    texts = ["one two three\ntwo one\n", "three three three\ntwo one\n"]
    found = []
    for number, text in enumerate(texts):
        made, batches = streams(part(tmp_path, text, f"{number}.txt"), tmp_path / str(number), words, documents="line")
        batches.streams, batches.length, batches.turns = 1, batches.size, -(-batches.size // 3)
        model, carried, said = network(words.vocabulary_size).eval(), {}, []
        with torch.no_grad():
            for rows in batches.plan(0):
                batch = batches.load(rows)
                for row in range(len(batch.ids)):
                    piece = type(batch)(*(field[row : row + 1] if field.dim() else field for field in batch))
                    said.append(
                        (
                            batch.targets[row][batch.mask[row]].tolist(),
                            float(made.loss(model, piece, carried=carried).total),
                        )
                    )
        found.append(said)
    assert found[0][0] != found[1][0]
    assert found[0][2:] == found[1][2:] and len(found[0]) == 4  # the second document begins within the second batch


def test_a_batch_that_is_run_in_halves_gives_the_same_gradients_and_states(tmp_path, words):
    made, batches = streams(part(tmp_path, TEXT * 4, "b.txt"), tmp_path, words, documents="line")
    results = []
    for most in (100, 1):
        model, carried = network(words.vocabulary_size), {}

        def loss(model: Any, batch: Any, most: int = most, carried: Any = carried) -> Any:
            found = made.loss(model, batch, carried=carried)
            if len(batch.ids) > most:
                raise MemoryError
            return found

        gradients = Gradients(model, loss, torch.device("cpu"), lambda: torch.autocast("cpu", enabled=False))
        for rows in batches.plan(0)[:4]:
            gradients.add(batches.load(rows), list)
        results.append((gradients.result(), carried))
    for one, other in zip(*(result[0] for result in results), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    for name, tensor in results[0][1].items():
        assert torch.allclose(tensor, results[1][1][name], atol=1e-6)


# --- scores


@pytest.mark.parametrize("batch", [1, 3])
def test_a_documents_score_does_not_hang_on_the_others(batch, monkeypatch):
    draw = np.random.default_rng(1)
    documents = [[BEGIN, *draw.integers(3, 12, size=size).tolist()] for size in (5, 1, 9, 300, 2)]
    model = network().eval()
    found = log_probs(model, documents, batch=batch)
    assert [len(one) for one in found] == [5, 1, 9, 300, 2]
    for document, said in zip(documents, found, strict=True):
        assert said == pytest.approx(log_probs(model, [document])[0], abs=1e-5)
    monkeypatch.setattr(language_scores, "HELD", 1)  # a step at a time
    for document, said in zip(documents, found, strict=True):
        assert said == pytest.approx(log_probs(model, [document])[0], abs=1e-5)
    lead = log_probs(model, documents, lead=2)
    assert [len(one) for one in lead] == [4, 0, 8, 299, 1] and lead[0] == pytest.approx(found[0][1:], abs=1e-5)


def test_a_long_document_is_scored_in_pieces_that_know_what_came_before(monkeypatch):
    draw = np.random.default_rng(1)
    document = [BEGIN, *draw.integers(3, 12, size=200).tolist()]
    window = network(history={"kind": "feedforward", "window": 3}).eval()
    recurrent = network().eval()
    whole = [log_probs(model, [document])[0] for model in (window, recurrent)]
    monkeypatch.setattr(language_scores, "WHOLE", 40)
    monkeypatch.setattr(language_scores, "WARM", 40)
    assert log_probs(window, [document])[0] == pytest.approx(whole[0], abs=1e-5)
    assert log_probs(recurrent, [document])[0] == pytest.approx(whole[1], abs=1e-3)
    monkeypatch.setattr(language_scores, "WARM", 1)
    assert log_probs(recurrent, [document])[0] != pytest.approx(whole[1], abs=1e-2)


def test_perplexities_say_what_they_count():
    amount = amount_of("two words\nüber", [5, 6, 4, UNKNOWN], UNKNOWN, ends=1)
    assert amount == Amount(symbols=4, characters=15, words=5, unknown=1)
    found = {score.name: score for score in perplexities(-8.0, amount, "word")}
    assert found["loss"].value == 2.0 and found["perplexity"].value == pytest.approx(math.exp(2))
    assert found["word_perplexity"].value == pytest.approx(math.exp(8 / 5))
    assert found["bits_per_character"].value == pytest.approx(8 / 15 / math.log(2))
    assert "4 symbols (word, 25.00% unknown)" in found["loss"].protocol
    assert not any(score.higher_is_better for score in found.values())


def test_settings_that_do_not_fit_are_refused():
    base = {"task": "language_model"}
    with pytest.raises(SettingsError, match=r"\[model\] the model 'seq2seq' is not for the task 'language_model'"):
        plan([("flag", {**base, "model": "seq2seq"})])
    adaptive = {"softmax": "adaptive", "tie": False}
    with pytest.raises(
        SettingsError, match=r"\[train.label_smoothing\] 0.1 was given, and an adaptive softmax has none"
    ):
        plan([("flag", {**base, "model": adaptive, "train": {"label_smoothing": 0.1}})])
    with pytest.raises(SettingsError, match=r"\[train.sampling\] 0.5 was given, and a language model reads the text"):
        plan([("flag", {**base, "train": {"sampling": 0.5}})])
    with pytest.raises(SettingsError, match=r"\[text\] no setting of 'text' is called 'source'"):
        plan([("flag", {**base, "text": {"source": "bpe"}})])
