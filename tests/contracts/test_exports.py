"""torch.export takes whole models: the graph gives the model's own numbers, for any number of rows. So does the meta
device, which gives shapes."""

from importlib import resources

import pytest
import torch

from unrolled.base.settings import read_yaml
from unrolled.models import ALIGNMENTS, DECODERS, ENCODERS, MODELS, Seq2Seq

VOCABULARY, SOURCE, TARGET = 13, 2, 3
SMALL_CELL = {"kind": "lstm", "hidden_size": 4}


def small(tree):
    """A preset's model with the same parts, at most 8 units, and no more layers than show what it does."""
    if not isinstance(tree, dict):
        return tree
    layers = 3 if tree.get("residual") else 2
    least = {"heads": 2, "layers": layers, "window": 2, "reach": 1}
    return {
        name: min(value, 8 if name.endswith("size") else least[name])
        if type(value) is int and (name.endswith("size") or name in least)
        else small(value)
        for name, value in tree.items()
    }


def presets():
    folder = resources.files("unrolled") / "presets"
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".yaml") and not path.name.endswith("-small.yaml"):
            with resources.as_file(path) as here:
                tree = read_yaml(here).get("model", {})
            if tree.get("kind", "seq2seq") == "seq2seq":
                yield path.name.removesuffix(".yaml"), small(MODELS.complete({"kind": "seq2seq", **tree}, "model"))


CASES = {
    **dict(presets()),
    "pyramid that copies": {
        "encoder": {"kind": "pyramidal", "cell": {"kind": "gru", "hidden_size": 3}},
        "decoder": {"kind": "query_before", "attention": {"kind": "additive", "coverage": "sum"}},
        "copy": True,
        "coverage_loss": 1.0,
    },
    "from any position": {"encoder": "rnn", "decoder": "fixed", "alignment": "independent"},
    "convolutions": {"encoder": {"kind": "cnn", "layers": 2, "hidden_size": 4}, "decoder": "fixed"},
    "nothing read, a gate": {"encoder": {"kind": "plain"}, "decoder": {"kind": "query_before", "gate": True}},
    "n-grams": {"encoder": {"kind": "ngram", "hidden_size": 3}, "decoder": "fixed"},
    "a normalised cell that is fed": {
        "encoder": {"kind": "rnn", "cell": SMALL_CELL, "bidirectional": False},
        "decoder": {"kind": "query_after", "cell": {**SMALL_CELL, "peephole": "full", "layer_norm": True}},
    },
}


class Both(torch.nn.Module):
    """A given target at once, and what a search calls: encode, then one step of the decoder."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, source_mask, target, target_mask):
        stepped = self.model.step(target[:, 0], self.model.start(source, source_mask))
        return tuple(self.model(source, source_mask, target, target_mask)), tuple(stepped)


def build(case, features=0):
    torch.manual_seed(3)
    settings = {name: value for name, value in CASES[case].items() if name != "kind"}
    return Seq2Seq(VOCABULARY, VOCABULARY, features, **{"embedding_size": 6, **settings}).eval()


def example():
    torch.manual_seed(5)
    sides = []
    for longest, lengths in ((SOURCE, [2, 1, 2]), (TARGET, [3, 2, 3])):
        sides += [
            torch.randint(4, VOCABULARY, (3, longest)),
            torch.arange(longest) < torch.tensor(lengths).unsqueeze(1),
        ]
    return tuple(sides)


@pytest.mark.parametrize("case", [*CASES, "letters with features", "transformer with features"])
def test_a_given_target_and_a_step_of_a_search_are_exported_for_any_number_of_rows(case):
    name, features, _ = case.partition(" with features")
    both, given = Both(build(name, 6 if features else 0)), example()
    if features:  # of the sentences with two symbols the first is a feature
        given[0][given[1][:, 1], 0] = VOCABULARY + 4
    rows = {0: torch.export.Dim("rows", min=2)}
    exported = torch.export.export(both, given, dynamic_shapes=(rows,) * 4, strict=False).module()
    for order in ([0, 1, 2], [2, 0], [1, 1, 0, 2]):
        some = tuple(tensor[order] for tensor in given)
        torch.testing.assert_close(exported(*some), both(*some), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_on_the_meta_device_a_model_has_the_shapes_of_one_elsewhere(case):
    both, (source, source_mask, target, _) = Both(build(case)), example()
    given = (source, source_mask, target, torch.ones_like(target, dtype=torch.bool))
    wanted = both(*given)
    found = both.to("meta")(*(tensor.to("meta") for tensor in given))
    assert shapes(found) == shapes(wanted)


def shapes(tree):
    if isinstance(tree, torch.Tensor | None):
        return None if tree is None else tree.shape
    return tuple(map(shapes, tree))


def test_every_encoder_decoder_and_alignment_is_among_them():
    for side, registry in (("encoder", ENCODERS), ("decoder", DECODERS), ("alignment", ALIGNMENTS)):
        parts = [case[side] for case in CASES.values() if case.get(side)]
        assert {part if isinstance(part, str) else part["kind"] for part in parts} == set(registry)


def test_a_recurrence_is_exported_for_one_number_of_steps():
    model, given = build("bahdanau"), example()
    steps = {1: torch.export.Dim("steps", min=1)}
    with pytest.raises(Exception, match=r"(?s)Constraints violated \(steps\).*specialized it to be a constant \(2\)"):
        torch.export.export(Both(model), given, dynamic_shapes=(steps, steps, None, None), strict=False)
