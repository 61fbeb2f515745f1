"""The bridge joins layers of any two networks."""

from __future__ import annotations

import pytest
import torch

from unrolled.base.errors import SettingsError
from unrolled.models import BRIDGES, Encoded
from unrolled.models.layout import by_layer

LAYOUTS = [((5,),), ((3, 3),), ((2, 2, 2, 2), (2, 2, 2, 2)), ((7,), (7,), (7,))]


def encoded(layout: tuple[tuple[int, ...], ...], rows: int = 2) -> Encoded:
    torch.manual_seed(0)
    state = tuple(torch.randn(rows, size) for layer in layout for size in layer)
    return Encoded(torch.zeros(rows, 4, 3), torch.ones(rows, 4).bool(), state, torch.zeros(rows, 3))


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("kind", ["projection", "zeros"])
def test_any_layout_becomes_any_other(source: tuple, target: tuple, kind: str) -> None:
    start = BRIDGES.build(kind, source, target)(encoded(source))
    assert [tuple(part.shape) for part in start] == [(2, size) for layer in target for size in layer]


def test_layers_are_paired_from_the_top() -> None:
    source, target = ((2,), (3,), (5,)), ((7,), (4,))
    bridge = BRIDGES.build("projection", source, target)
    before = encoded(source)
    start = bridge(before)
    for layer, (part, size) in enumerate(zip(before.state[1:], (3, 5), strict=True)):
        assert bridge.layers[layer].in_features == size
        torch.testing.assert_close(start[layer], torch.tanh(bridge.layers[layer](part)))
    deeper = BRIDGES.build("projection", ((3,),), ((2,), (5,)))
    assert [layer.in_features for layer in deeper.layers] == [3, 3]


def test_without_tanh_the_projection_is_linear() -> None:
    bridge = BRIDGES.build({"kind": "projection", "activation": "none"}, ((3, 3),), ((2,),))
    before = encoded(((3, 3),))
    torch.testing.assert_close(bridge(before)[0], bridge.layers[0](torch.cat(before.state, dim=1)))


def test_copy_hands_the_state_on_and_refuses_other_sizes() -> None:
    before = encoded(((3, 3), (3, 3)))
    assert BRIDGES.build("copy", ((3, 3), (3, 3)), ((3, 3), (3, 3)))(before) is before.state
    with pytest.raises(
        SettingsError, match=r"the bridge 'copy' needs .* not \(3, 3\) and \(3\) \+ \(3\)\. .* 'projection'\."
    ):
        BRIDGES.build("copy", ((3, 3),), ((3,), (3,)))


def test_zeros_are_zeros_of_the_encoders_type() -> None:
    before = encoded(((3,),))
    start = BRIDGES.build("zeros", ((3,),), ((2,), (5,)))(before._replace(summary=before.summary.double()))
    assert all(part.dtype is torch.float64 and not part.any() for part in start)


def test_flat_sizes_by_layer() -> None:
    assert by_layer((5, 5, 3, 3), 2) == ((5, 5), (3, 3))
    assert by_layer((4,), 1) == ((4,),)
