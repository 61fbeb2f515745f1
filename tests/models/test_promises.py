"""What `unrolled selfcheck` promises holds for models without a recurrence, and for those that copy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_parts import DECODERS, ENCODERS

from unrolled.base.protocol import END, SPECIALS, UNKNOWN
from unrolled.pipeline import Translator
from unrolled.tasks.translate import Translate, copied_as
from unrolled.text.texts import TextPair, TextSettings
from unrolled.workshop.plan import plan
from unrolled.workshop.promises import check_promises

SOURCES = ["one red cat", "two dogs", "un chat", "cat"]
TARGETS = ["un chat rouge", "deux cat", "cat", "chat"]
WORDS = {"source": "word", "target": "word"}


def texts() -> TextPair:
    text = TextPair.build(TextSettings(**WORDS))
    text.train(SOURCES * 2, TARGETS * 2)  # a word is known from its second time on
    return text


def model(**settings: Any) -> Translator:
    """A model with random weights that ends its outputs soon."""
    tree = {"model": {"embedding_size": 6, **settings}, "text": WORDS, "search": {"max_length": 6, "beam": 2}}
    planned, text = plan([("test", tree)]), texts()
    torch.manual_seed(0)
    network = Translate().network(planned.settings["model"], text)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.5)
        network.output.bias[END] = 2.0
    return Translator(planned, text, network, device="cpu")


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": ENCODERS["transformer"], "decoder": DECODERS["transformer"]},
        {"encoder": ENCODERS["pyramidal"], "decoder": DECODERS["gnmt"], "copy": True},
        {"encoder": ENCODERS["cnn"], "decoder": DECODERS["feedforward"]},
    ],
    ids=["transformer", "pyramid that copies", "windows"],
)
def test_every_promise_holds(settings: dict[str, Any]) -> None:
    checks = check_promises(model(**settings), [*SOURCES, "red red red red red red"])
    assert len(checks) == 7
    assert all(check.holds for check in checks), checks
    assert "no finished output" not in " ".join(check.detail for check in checks)


def test_a_source_word_is_copied_as_the_target_word_that_is_written_alike() -> None:
    text = texts()
    targets = dict(zip(text.source.vocabulary, copied_as(text), strict=True))
    assert [targets[symbol] for symbol in text.source.vocabulary[:4]] == [0, 1, 2, 3]
    shared = set(text.source.vocabulary[4:]) & set(text.target.vocabulary)
    assert shared and set(text.source.vocabulary) - set(text.target.vocabulary)
    for symbol in text.source.vocabulary[4:]:
        wanted = symbol if symbol in shared else SPECIALS[UNKNOWN]
        assert text.target.vocabulary[targets[symbol]] == wanted
    copying = model(copy=True)
    assert copying.network.pointer.targets.tolist() == copied_as(text)
