"""The loss that a model is trained on is the cross-entropy of the logits that it gives, though it never holds them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.models import Seq2Seq

SOURCE, TARGET = 11, 13
GIVEN = (
    torch.tensor([[4, 5, 6, 3], [7, 3, 0, 0]]),
    torch.tensor([[True] * 4, [True, True, False, False]]),
    torch.tensor([[2, 4, 5, 6, 3], [2, 7, 3, 0, 0]]),
    torch.tensor([[True] * 5, [True, True, True, False, False]]),
)
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tied with a projection": {"tie": "decoder", "embedding_size": 5},
    "copying": {"copy": True, "coverage_loss": 0.3},
}


def build(**settings: Any) -> Seq2Seq:
    torch.manual_seed(0)
    cell = {"kind": "gru", "hidden_size": 7}
    plain = {
        "embedding_size": 3,
        "dropout": 0.0,
        "encoder": {"kind": "rnn", "cell": cell},
        "decoder": {"kind": "query_before", "cell": cell},
    }
    return Seq2Seq(SOURCE, TARGET, **{**plain, **settings}).double()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_is_the_cross_entropy_of_the_logits(settings: dict[str, Any], smoothing: float) -> None:
    model = build(**settings)
    mine = model.loss(*GIVEN, smoothing=smoothing)
    forced = model(*GIVEN)
    gold = GIVEN[2][:, 1:][GIVEN[3][:, 1:]]
    theirs = functional.cross_entropy(forced.logits, gold, reduction="sum", label_smoothing=smoothing)
    theirs = theirs if forced.penalty is None else theirs + forced.penalty
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for one, other in zip(torch.autograd.grad(mine, parameters), torch.autograd.grad(theirs, parameters), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_sampling_is_that_of_the_forward_pass() -> None:
    model = build()
    torch.manual_seed(3)
    mine = model.loss(*GIVEN, sampling=0.7)
    torch.manual_seed(3)
    gold = GIVEN[2][:, 1:][GIVEN[3][:, 1:]]
    torch.testing.assert_close(mine, functional.cross_entropy(model(*GIVEN, 0.7).logits, gold, reduction="sum"))
    with pytest.raises(SettingsError, match=r"a sampling of 1\.5"):
        model.loss(*GIVEN, sampling=1.5)
