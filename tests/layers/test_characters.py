"""Words by their characters: each alone, without padding, is the oracle of a padded block."""

from typing import Literal

import pytest
import torch

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers.characters import CharacterEncoder


@pytest.mark.parametrize("reader", ["cnn", "lstm"])
def test_padding_changes_neither_values_nor_gradients(reader: Literal["cnn", "lstm"]) -> None:
    torch.manual_seed(0)
    encoder = CharacterEncoder(11, reader=reader, size=3, hidden_size=5).double()
    words = [[5], [6, 7], [8, 9, 10, 5, 6]]
    block = torch.zeros(1, 4, 7, dtype=torch.long)
    for row, word in enumerate(words):
        block[0, row, : len(word)] = torch.tensor(word)
    found = encoder(block)
    alone = torch.cat([encoder(torch.tensor([[word]]))[0] for word in words])
    torch.testing.assert_close(found[0, :3], alone)
    assert found.shape == (1, 4, encoder.output_size) and not found[0, 3].any()
    weights = list(encoder.parameters())
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), weights),
        torch.autograd.grad(alone.square().sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_wrong_calls() -> None:
    with pytest.raises(SettingsError, match="Known: cnn, lstm"):
        CharacterEncoder(5, reader="gru")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="odd window"):
        CharacterEncoder(5, window=2)
    with pytest.raises(UsageError, match="inside a word"):
        CharacterEncoder(5)(torch.tensor([[[4, 0, 4]]]))
    with pytest.raises(UsageError, match="words, characters"):
        CharacterEncoder(5)(torch.tensor([[4, 0]]))
