"""Any encoder with any decoder: what a row says depends on the row alone, and a step is a part of the whole pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_parts import ALIGNMENTS as SMALL_ALIGNMENTS
from small_parts import DECODERS as SMALL_DECODERS
from small_parts import ENCODERS as SMALL_ENCODERS
from small_parts import GRU, LSTM

from unrolled.base.protocol import BEGIN
from unrolled.layers import cross_entropy
from unrolled.models import ALIGNMENTS, DECODERS, ENCODERS, Seq2Seq

RNN = {"kind": "rnn", "cell": GRU}
ADDITIVE = {"kind": "additive", "hidden_size": 4}
MORE: list[dict[str, Any]] = [
    {"encoder": {**SMALL_ENCODERS["pyramidal"], "layers": 2, "cell": LSTM}, "decoder": SMALL_DECODERS["transformer"]},
    {"encoder": {**SMALL_ENCODERS["transformer"], "norm": "post", "positions": "learned"}},
    {"encoder": {**SMALL_ENCODERS["ngram"], "join": "max"}},
    {"encoder": {"kind": "rnn", "cell": {**LSTM, "projection_size": 2, "layer_norm": True}, "initial": "learned"}},
    {"decoder": {**SMALL_DECODERS["transformer"], "norm": "post", "positions": "none", "alignment_layer": 2}},
    {"decoder": {**SMALL_DECODERS["feedforward"], "attention": None}},
    *(
        {"encoder": RNN, "decoder": {**SMALL_DECODERS[decoder], "cell": {**cell, **options}, "attention": ADDITIVE}}
        for decoder in ("gnmt", "query_after", "query_before")
        for cell, options in ((LSTM, {"layer_norm": True, "peephole": "full"}), (LSTM, {"projection_size": 2}))
    ),
    *(
        {
            "encoder": RNN,
            "decoder": {**SMALL_DECODERS[decoder], **feeding, "attention": {"kind": "bilinear", **attention}},
        }
        for decoder, feeding, attention in (
            ("query_before", {}, {"reach": {"kind": "local_m", "window": 1}, "coverage": "sum"}),
            (
                "query_after",
                {"input_feeding": False},
                {"reach": {"kind": "local_m", "window": 1}, "coverage": "neural"},
            ),
            ("query_after", {}, {"reach": "local_p", "coverage": {"kind": "sum", "fertility": 2.0}}),
            ("gnmt", {}, {"reach": "local_p", "normaliser": "sparsemax"}),
            ("feedforward", {}, {"reach": {"kind": "local_m", "window": 2}, "coverage": "sum"}),
        )
    ),
    {"encoder": SMALL_ENCODERS["pyramidal"], "copy": True, "coverage_loss": 1.0},
    {"encoder": RNN, "decoder": SMALL_DECODERS["transformer"], "copy": True},
    {"encoder": RNN, "decoder": {**SMALL_DECODERS["query_before"], "gate": True, "layers": 2}},
    {"encoder": SMALL_ENCODERS["pyramidal"], "decoder": SMALL_DECODERS["fixed"], "alignment": "monotonic"},
    {
        "encoder": RNN,
        "decoder": {"kind": "fixed", "cell": GRU, "context": "once"},
        "bridge": "zeros",
        "alignment": "monotonic",
        "copy": True,
        "coverage_loss": 0.5,
    },
]
CASES: dict[str, dict[str, Any]] = {
    **{
        f"{encoder}-{decoder}": {"encoder": SMALL_ENCODERS[encoder], "decoder": SMALL_DECODERS[decoder]}
        for encoder in ENCODERS
        for decoder in DECODERS
    },
    **{
        f"{alignment}-{decoder}": {"encoder": RNN, "decoder": small, "alignment": SMALL_ALIGNMENTS[alignment]}
        for alignment in ALIGNMENTS
        for decoder, small in SMALL_DECODERS.items()
    },
    **{f"more-{number}": case for number, case in enumerate(MORE)},
}
every_model = pytest.mark.parametrize("case", list(CASES))
SIZES = ([3, 1, 6], [2, 4, 0])


@pytest.fixture
def model(case: str, small: Callable[..., Seq2Seq]) -> Seq2Seq:
    return small(**CASES[case])


@every_model
def test_a_row_depends_on_neither_padding_nor_neighbours_nor_order(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs(*SIZES, padding=(2, 1))
    said, seen = model.log_probs(*batch), model(*batch).weights
    order = [2, 0, 1]
    torch.testing.assert_close(model.log_probs(*(side[order] for side in batch)), said[order], rtol=1e-5, atol=1e-6)
    for row in range(3):
        words, symbols = SIZES[0][row] + 1, SIZES[1][row] + 2
        ends = (words, words, symbols, symbols)
        lone = [side[row : row + 1, :end] for side, end in zip(batch, ends, strict=True)]
        torch.testing.assert_close(model.log_probs(*lone)[0], said[row, : symbols - 1], rtol=1e-5, atol=1e-6)
        if seen is not None:
            alone = model(*lone).weights
            torch.testing.assert_close(alone[0], seen[row, : symbols - 1, :words], rtol=1e-5, atol=1e-6)


@every_model
def test_step_by_step_is_the_whole_pass(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs(*SIZES)
    forced = model(*batch)
    state, said, seen = model.start(batch.source_ids, batch.source_mask), [], []
    for last in batch.target_ids[:, :-1].unbind(1):
        held = state[: model.held]
        logits, weights, state = model.step(last, state)
        assert all(one is other for one, other in zip(held, state[: model.held], strict=True))
        said.append(logits)
        seen.append(weights)
    real = batch.target_mask[:, 1:]
    torch.testing.assert_close(torch.stack(said, dim=1)[real], forced.logits, rtol=1e-5, atol=1e-5)
    if forced.weights is None:
        assert set(seen) == {None}
    else:
        looked = torch.stack(seen, dim=1)[real]
        torch.testing.assert_close(looked, forced.weights[real].to(looked.dtype), rtol=1e-5, atol=1e-5)


@every_model
def test_weights_are_over_the_real_words_of_the_source(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs(*SIZES, padding=(3, 0))
    weights = model(*batch).weights
    if not (model.decoder.attends or model.alignment):
        assert weights is None
        return
    assert weights.shape == (3, batch.target_ids.shape[1] - 1, batch.source_ids.shape[1])
    assert (weights[(~batch.source_mask).unsqueeze(1).expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights.sum(dim=2), torch.ones_like(weights[..., 0]), rtol=0, atol=1e-6)


@every_model
def test_a_selected_state_goes_on_as_its_row_did(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs(*SIZES)
    state = model.step(torch.full((3,), BEGIN), model.start(batch.source_ids, batch.source_mask)).state
    assert all(len(part) == 3 for part in state)
    rows, last = torch.tensor([2, 0, 0, 1]), torch.tensor([4, 5, 6, 7])
    many = model.step(last, model.select(state, rows))
    for place, row in enumerate(rows.tolist()):
        alone = model.step(last[place : place + 1], model.select(state, torch.tensor([row])))
        torch.testing.assert_close(many.logits[place], alone.logits[0], rtol=1e-5, atol=1e-6)
    within, turned = model.select(many.state, torch.tensor([0, 2, 1, 3])), torch.tensor([0, 2, 1, 3])
    for kept, part in zip(within, many.state, strict=True):
        assert torch.equal(kept, part.index_select(0, turned))
    assert all(one is other for one, other in zip(within[1 : model.held], many.state[1 : model.held], strict=True))


@every_model
def test_every_source_word_is_heard_and_every_weight_learns(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs(*SIZES)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = [weight.detach().clone() for weight in model.parameters()]
    gold = batch.target_ids[:, 1:][batch.target_mask[:, 1:]]
    for _ in range(2):
        forced = model(*batch)
        loss = cross_entropy(forced.logits, gold) + (0 if forced.penalty is None else forced.penalty)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.isfinite()
    learnt = zip(model.named_parameters(), before, strict=True)
    assert not [name for (name, weight), old in learnt if torch.equal(weight, old)]
    assert (model.source_embedding.weight.grad[batch.source_ids[batch.source_mask]].abs().sum(dim=1) > 0).all()


@every_model
def test_bfloat16_is_the_same_up_to_rounding(case: str, pairs: Callable) -> None:
    torch.manual_seed(0)
    model, batch = Seq2Seq(11, 13, embedding_size=5, **CASES[case]).eval(), pairs(*SIZES)
    exact = model.log_probs(*batch)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(*batch)
        near = model.log_probs(*batch)
    assert near.dtype is torch.float32
    torch.testing.assert_close(near, exact, rtol=0.05, atol=0.1)
    if rough.weights is not None:
        assert rough.weights.dtype is torch.float32


@every_model
def test_saved_and_loaded_it_says_the_same(case: str, model: Seq2Seq, pairs: Callable, tmp_path: Path) -> None:
    batch, place = pairs(*SIZES), tmp_path / "model.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, place)
    again = Seq2Seq(11, 13, **{"embedding_size": 5, "dropout": 0.0, **CASES[case]}).double().eval()
    again.load_state_dict(load_file(place))
    assert torch.equal(model.log_probs(*batch), again.log_probs(*batch))


@pytest.mark.parametrize("bridge", ["projection", "copy", "zeros"])
@pytest.mark.parametrize("encoder", list(ENCODERS))
def test_every_bridge_takes_what_any_encoder_gives(
    encoder: str, bridge: str, small: Callable[..., Seq2Seq], pairs: Callable
) -> None:
    settings = SMALL_ENCODERS[encoder]
    probe = ENCODERS.build(settings, 5)
    single = len(probe.layout) == 1 and len(probe.layout[0]) == 1
    decoder = {"kind": "query_before", "cell": {"kind": "gru", "hidden_size": probe.layout[0][0] if single else 6}}
    if bridge == "copy" and not single:
        decoder = SMALL_DECODERS["transformer"]  # which has no state to be carried into
    model, batch = small(encoder=settings, decoder=decoder, bridge=bridge), pairs(*SIZES)
    assert model.log_probs(*batch).isfinite().all()
