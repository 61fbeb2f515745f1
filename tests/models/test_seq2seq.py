"""Whole models: what a row says depends on nothing but the row, and step by step is the whole pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import BEGIN
from unrolled.models import MODELS, Seq2Seq
from unrolled.models.output import Output

CELLS = ({"kind": "elman"}, {"kind": "lstm"}, {"kind": "gru"}, {"kind": "gru", "reset": "after"})
ATTENTIONS = ("dot", "scaled_dot", "bilinear", {"kind": "additive", "hidden_size": 3})
DECODERS = (
    *({"kind": "query_before", "layers": layers, "attention": a} for a in ATTENTIONS for layers in (1, 2)),
    *(
        {"kind": "query_after", "input_feeding": feeding, "attention": a}
        for a in ATTENTIONS
        for feeding in (True, False)
    ),
    {"kind": "query_after", "input_feeding": True, "layers": 2, "residual": True},
    *({"kind": "fixed", "context": context, "layers": 2} for context in ("once", "every_step")),
)
ENCODERS = (
    {"kind": "rnn", "bidirectional": True},
    {"kind": "rnn", "bidirectional": False, "layers": 2},
    {"kind": "rnn", "bidirectional": True, "layers": 3, "residual": True, "reverse": True},
)


def models() -> list[tuple[dict, dict]]:
    """Every cell × decoder × attention; encoders and their cells in turn, so that each meets each decoder."""
    made = []
    for place, (cell, decoder) in enumerate((cell, decoder) for cell in CELLS for decoder in DECODERS):
        encoder = ENCODERS[place % len(ENCODERS)]
        other = CELLS[(place // 2) % len(CELLS)]
        width = 6 if encoder["bidirectional"] is False else 3
        made.append(
            (
                {**encoder, "cell": {**other, "hidden_size": width}},
                {**decoder, "cell": {**cell, "hidden_size": 6}},
            )
        )
    return made


every_model = pytest.mark.parametrize("encoder, decoder", models(), ids=str)


@every_model
def test_a_row_depends_on_neither_padding_nor_neighbours_nor_order(
    encoder: dict, decoder: dict, small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    model = small(encoder=encoder, decoder=decoder)
    lengths = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=2, max_size=4)

    @settings(max_examples=4, deadline=None, database=None, derandomize=True)
    @given(lengths, st.randoms(use_true_random=False), st.integers(0, 3), st.integers(0, 3))
    def check(sizes: list[tuple[int, int]], random, more_source: int, more_target: int) -> None:
        source, target = [list(side) for side in zip(*sizes, strict=True)]
        batch = pairs(source, target, seed=7, padding=(more_source, more_target))
        said, seen = model.log_probs(*batch), model(*batch).weights
        order = random.sample(range(len(sizes)), len(sizes))
        shuffled = model.log_probs(*(side[order] for side in batch))
        torch.testing.assert_close(shuffled, said[order], rtol=1e-6, atol=1e-6)
        for row in range(len(sizes)):
            words, symbols = source[row] + 1, target[row] + 2
            lone = [
                side[row : row + 1, :size] for side, size in zip(batch, (words, words, symbols, symbols), strict=True)
            ]
            torch.testing.assert_close(model.log_probs(*lone)[0], said[row, : symbols - 1], rtol=1e-6, atol=1e-6)
            assert (said[row, symbols - 1 :] == 0).all()
            if seen is not None:
                torch.testing.assert_close(
                    model(*lone).weights[0], seen[row, : symbols - 1, :words], rtol=1e-5, atol=1e-5
                )

    check()


@every_model
def test_step_by_step_is_the_whole_pass(
    encoder: dict, decoder: dict, small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    model = small(encoder=encoder, decoder=decoder)
    batch = pairs([3, 1, 4], [2, 4, 0])
    forced = model(*batch)
    state = model.start(batch.source_ids, batch.source_mask)
    said, seen = [], []
    for last in batch.target_ids[:, :-1].unbind(1):
        logits, weights, state = model.step(last, state)
        said.append(logits)
        seen.append(weights)
    real = batch.target_mask[:, 1:]
    torch.testing.assert_close(torch.stack(said, dim=1)[real], forced.logits, rtol=1e-5, atol=1e-5)
    if forced.weights is None:
        assert set(seen) == {None}
    else:
        torch.testing.assert_close(
            torch.stack(seen, dim=1)[real], forced.weights[real].to(seen[0].dtype), rtol=1e-5, atol=1e-5
        )


@every_model
def test_padding_gets_no_weight_and_no_gradient(
    encoder: dict, decoder: dict, small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    model = small(encoder=encoder, decoder=decoder)
    batch = pairs([3, 1], [2, 4], padding=(2, 2))
    embedded = model.source_embedding(batch.source_ids).detach().requires_grad_()
    encoded = model.encoder(embedded, batch.source_mask)
    state = model.decoder.start(encoded, model.bridge(encoded))
    outputs, weights = model.decoder(model.target_embedding(batch.target_ids[:, :-1]), state)
    outputs[batch.target_mask[:, 1:]].sum().backward()
    assert embedded.grad is not None
    assert (embedded.grad[~batch.source_mask] == 0).all()
    assert (embedded.grad[batch.source_mask].abs().sum(dim=1) > 0).all()
    if weights is not None:
        padding = ~batch.source_mask.unsqueeze(1).expand_as(weights)
        assert (weights[padding] == 0).all()
        torch.testing.assert_close(weights.sum(dim=2), torch.ones_like(weights[..., 0]))


@every_model
def test_a_selected_state_goes_on_as_its_row_did(
    encoder: dict, decoder: dict, small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    model = small(encoder=encoder, decoder=decoder)
    batch = pairs([3, 1, 4], [2, 2, 2])
    state = model.start(batch.source_ids, batch.source_mask)
    begin = torch.full((3,), BEGIN)
    state = model.step(begin, state).state
    rows = torch.tensor([2, 0, 0, 1])
    last = torch.tensor([4, 5, 6, 7])
    many = model.step(last, model.select(state, rows))
    for place, row in enumerate(rows.tolist()):
        alone = model.step(last[place : place + 1], model.select(state, torch.tensor([row])))
        torch.testing.assert_close(many.logits[place], alone.logits[0], rtol=1e-6, atol=1e-6)
    within = model.select(many.state, torch.tensor([0, 2, 1, 3]))
    plain = tuple(part.index_select(0, torch.tensor([0, 2, 1, 3])) for part in many.state)
    assert all(torch.equal(one, other) for one, other in zip(within, plain, strict=True))


def test_what_belongs_to_a_sentence_is_not_copied_when_a_beam_is_reordered(
    small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    model = small(decoder={"kind": "query_before", "cell": {"kind": "gru", "hidden_size": 6}})
    batch = pairs([3, 1], [2, 2])
    state = model.start(batch.source_ids, batch.source_mask)
    beam = model.select(state, torch.tensor([0, 0, 1, 1]))
    held = model.decoder.held + 1
    reordered = model.select(beam, torch.tensor([1, 0, 2, 2]))
    assert all(one is other for one, other in zip(reordered[:held], beam[:held], strict=True))
    crossed = model.select(beam, torch.tensor([2, 0, 1, 3]))
    assert torch.equal(crossed[1], beam[1][[2, 0, 1, 3]])


@pytest.mark.parametrize("rows", [1, 63, 64, 65])
def test_rounding_the_number_of_rows_changes_neither_logits_nor_gradients(rows: int) -> None:
    torch.manual_seed(0)
    output, hidden = Output(5, 13), torch.randn(rows, 5, requires_grad=True)
    wanted = torch.randn(rows, 13)
    found = []
    for reduced in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=reduced):
            logits = output(hidden)
        assert logits.shape == (rows, 13)
        gradients = torch.autograd.grad((logits * wanted).sum(), [hidden, output.weight, output.bias])
        found.append([logits, *gradients])
    for one, other in zip(*found, strict=True):
        assert ((one - other.float()).norm() / one.norm()) < 0.02


def test_log_probs_are_the_gold_symbols_log_softmax(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model = small(double=False)
    batch = pairs([3, 1], [2, 4])
    logits = model(*batch).logits
    gold = batch.target_ids[:, 1:][batch.target_mask[:, 1:]]
    said = model.log_probs(*batch)
    assert said.dtype is torch.float32
    assert said.shape == (2, 5)
    torch.testing.assert_close(
        said[batch.target_mask[:, 1:]], -functional.cross_entropy(logits, gold, reduction="none")
    )


def test_always_sampling_feeds_the_models_own_best_symbols(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model = small()
    batch = pairs([3, 1], [4, 4])
    state, last, fed = model.start(batch.source_ids, batch.source_mask), batch.target_ids[:, 0], []
    for _ in range(5):
        fed.append(last)
        logits, _, state = model.step(last, state)
        last = logits.argmax(dim=1)
    greedy = torch.stack([*fed, last], dim=1)
    assert not torch.equal(greedy[:, :-1], batch.target_ids[:, :-1])
    expected = model(batch.source_ids, batch.source_mask, greedy, batch.target_mask).logits
    torch.testing.assert_close(model(*batch, sampling=1.0).logits, expected)


def test_sampling_replaces_about_the_asked_share(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model = small(decoder={"kind": "fixed", "cell": {"kind": "gru", "hidden_size": 6}})
    batch = pairs([2] * 40, [9] * 40)
    torch.manual_seed(0)
    state = model.start(batch.source_ids, batch.source_mask)
    fed = model._mix_in_own(batch.target_ids[:, :-1], state, 0.3)
    changed = (fed != batch.target_ids[:, :-1]).double().mean().item()
    assert 0.15 < changed < 0.35
    assert (fed[:, 0] == BEGIN).all()


def test_sampling_carries_gradients_and_zero_is_teacher_forcing(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model = small()
    batch = pairs([3, 1], [2, 4])
    torch.testing.assert_close(model(*batch, sampling=0.0).logits, model(*batch).logits, rtol=0, atol=0)
    model(*batch, sampling=0.5).logits.sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("decoder", ["query_before", "query_after", "fixed"])
def test_sampling_trains_with_locked_dropout_and_leaves_the_modes_alone(decoder: str, pairs: Callable) -> None:
    settings = {"kind": decoder, "layers": 2, "dropout": 0.3, "dropout_kind": "locked"}
    model = Seq2Seq(11, 13, embedding_size=5, dropout=0.3, dropout_kind="locked", decoder=settings)
    model.encoder.eval()
    model(*pairs([3, 1], [2, 4]), sampling=0.5).logits.sum().backward()
    assert model.training and model.decoder.training and not model.encoder.training


@pytest.mark.parametrize("sampling", [-0.1, 1.5])
def test_sampling_is_a_probability(sampling: float, small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    with pytest.raises(SettingsError, match=r"a sampling of .* was given; it must be from 0 to 1\."):
        small()(*pairs([3], [2]), sampling=sampling)


@pytest.mark.parametrize("readout_size", [5, 7])
def test_tied_weights_are_one_tensor_and_learn_from_both_sides(readout_size: int, pairs: Callable) -> None:
    decoder = {"kind": "query_before", "readout_size": readout_size}
    model = Seq2Seq(13, 13, embedding_size=5, tie="all", decoder=decoder)
    assert model.output.weight is model.target_embedding.weight is model.source_embedding.weight
    assert (model.output.projection is None) == (readout_size == 5)
    names = [name for name, _ in model.named_parameters()]
    assert "source_embedding.weight" in names
    assert not {"target_embedding.weight", "output.weight"} & set(names)
    batch = pairs([3, 1], [2, 4])
    batch = batch._replace(source_ids=batch.source_ids.clamp(max=10))
    model(*batch).logits.sum().backward()
    assert model.source_embedding.weight.grad.abs().sum() > 0


def test_tying_the_decoder_leaves_the_source_alone() -> None:
    model = Seq2Seq(11, 13, embedding_size=5, tie="decoder")
    assert model.output.weight is model.target_embedding.weight
    assert model.source_embedding.weight.shape == (11, 5)


def test_tying_all_needs_one_vocabulary() -> None:
    with pytest.raises(
        SettingsError, match=r"\[tie\] 'all' needs one vocabulary .* 11 and 13 symbols\. Set text\.joint"
    ):
        Seq2Seq(11, 13, tie="all")


def test_a_decoder_that_would_hear_nothing_of_the_source_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"\[bridge\] nothing of the source reaches .* every_step\."):
        Seq2Seq(11, 13, bridge="zeros", decoder={"kind": "fixed", "context": "once"})


LSTM = {"kind": "lstm", "hidden_size": 6}


@pytest.mark.parametrize(
    "place, part, inner, said",
    [
        (
            "encoder",
            "cell",
            {"kind": "lstm", "zoneout": 2},
            r"\[model\.encoder\.cell\] zoneout of a cell is 2\.0; it must be",
        ),
        ("encoder", "residual", 7, r"\[model\.encoder\.residual\] 7 was given, and there are 1 layers"),
        ("decoder", "attention", "dot", r"\[model\.decoder\.attention\] the attention 'dot' needs equal sizes; the qu"),
        (
            "decoder",
            "attention",
            {"kind": "dot", "reach": {"kind": "local_p", "window": 0}},
            r"\[model\.decoder\.attention\.reach\] window of the reach 'local_p' is 0; give at least 1\.",
        ),
        (
            "decoder",
            "attention",
            "dott",
            r"\[model\.decoder\.attention\] no attention .* 'dott'\. Did you mean 'dot'\?",
        ),
        ("decoder", "readout_size", 0, r"\[model\.decoder\.readout_size\] 0 was given"),
    ],
)
def test_a_part_that_refuses_its_settings_is_named_by_its_place(place: str, part: str, inner: Any, said: str) -> None:
    sides = {"encoder": {"kind": "rnn", "cell": LSTM}, "decoder": {"kind": "query_before", "cell": LSTM}}
    if part == "attention" and isinstance(inner, dict):
        sides["encoder"]["bidirectional"] = False
    sides[place] |= {part: inner}
    with pytest.raises(SettingsError, match=f"^{said}"):
        MODELS.build({"kind": "seq2seq", **sides}, 11, 13, where="model")


def test_a_scaled_embedding_reads_vectors_times_the_root_of_their_size(
    small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    batch = pairs([3, 1], [2, 4])
    scaled, plain = small(embedding_scale="root"), small()
    with torch.no_grad():
        for table in (plain.source_embedding, plain.target_embedding):
            table.weight.mul_(5**0.5)
    torch.testing.assert_close(scaled(*batch).logits, plain(*batch).logits)
    state = scaled.start(batch.source_ids, batch.source_mask)
    said = scaled.step(batch.target_ids[:, 0], state).logits
    torch.testing.assert_close(said[0], plain(*batch).logits[0])


def test_dropout_draws_in_training_only(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model = small(dropout=0.5, word_dropout=0.3)
    batch = pairs([3, 1], [2, 4])
    assert torch.equal(model(*batch).logits, model(*batch).logits)
    model.train()
    assert not torch.equal(model(*batch).logits, model(*batch).logits)


def test_locked_dropout_drops_the_same_numbers_at_every_step(pairs: Callable) -> None:
    torch.manual_seed(0)
    decoder = {"kind": "fixed", "cell": {"kind": "gru", "hidden_size": 40}}
    model = Seq2Seq(11, 13, embedding_size=5, dropout=0.5, dropout_kind="locked", decoder=decoder)
    seen = []
    model.output.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(*pairs([3], [6]))
    dropped = seen[0] == 0
    assert (dropped == dropped[0]).all()
    assert 0 < dropped[0].sum() < 40


def test_the_model_gives_the_same_under_autocast_up_to_rounding(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    for decoder in ("query_before", "query_after", "fixed"):
        settings = {"kind": decoder, "layers": 2, "cell": {"kind": "lstm", "hidden_size": 6}}
        model = small(decoder=settings, double=False)
        batch = pairs([3, 1], [2, 4])
        exact = model.log_probs(*batch)
        with torch.autocast("cpu", torch.bfloat16):
            rough = model.log_probs(*batch)
        assert rough.dtype is torch.float32
        torch.testing.assert_close(rough, exact, rtol=0.1, atol=0.2)


def test_what_a_model_cannot_be_given_is_named(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model, batch = small(), pairs([3, 1], [2, 4])
    source, source_mask, target, target_mask = batch
    for sides, said in (
        (
            (source, source_mask[:, :2], target, target_mask),
            r"source_mask is torch.bool \[2, 2\]; it must be .*\[2, 4\]",
        ),
        (
            (source, source_mask, target, target_mask[:, :3]),
            r"target_mask is torch.bool \[2, 3\]; it must be .*\[2, 6\]",
        ),
        ((source, source_mask, target, target_mask.long()), r"target_mask is torch.int64"),
        ((source[:1], source_mask[:1], target, target_mask), r"source_ids have 1 rows, target_ids 2"),
        (
            (source[:0], source_mask[:0], target, target_mask),
            r"source_ids have the shape \[0, 4\]; .* at least one row",
        ),
        ((source, source_mask, target[:, :1], target_mask[:, :1]), r"target_ids have one symbol a row"),
        ((source + 11, source_mask, target, target_mask), r"ids of an embedding hold \d+; with 11 symbols .* 0 to 10"),
        ((source, source_mask, -target, target_mask), r"ids of an embedding hold -\d+; with 13 symbols"),
    ):
        with pytest.raises(UsageError, match=said):
            model(*sides)
    state, last = model.start(source, source_mask), target[:, 0]
    with pytest.raises(UsageError, match=r"the state of a step has \d+ tensors with \[2\] rows, last_ids have 3; take"):
        model.step(torch.tensor([BEGIN] * 3), state)
    with pytest.raises(UsageError, match=r"has 0 tensors with \[\] rows"):
        model.step(last, ())
    with pytest.raises(UsageError, match=r"last_ids have the shape \[2, 1\]; they must be \[batch\]"):
        model.step(last.unsqueeze(1), state)
