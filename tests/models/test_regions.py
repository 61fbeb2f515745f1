"""Images as rows of regions: padding and neighbours change nothing; norms and moved pixels against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers import ATTENTIONS
from unrolled.layers.attention import Gated
from unrolled.models import GRIDS, JITTERS, ImageFront
from unrolled.models.grids import BatchNorm, GroupNorm
from unrolled.models.jitters import moved

SIZES = [(5, 7), (3, 2), (8, 4), (8, 7)]
KINDS = [
    {"kind": "convolutional", "sizes": [4, 6], "reduce": reduce, "norm": norm, "convolutions": convolutions}
    for reduce in ("max", "stride")
    for norm in ("group", "batch", "none")
    for convolutions in (1, 2)
] + [{"kind": "convolutional", "sizes": [4, 6, 5], "strides": [2, 1, 3], "width": width} for width in (5, [5, 1, 3])]


def padded(dtype=torch.float64):
    """Four images of different sizes with rubbish behind them, and their mask."""
    torch.manual_seed(1)
    height, width = (max(side) for side in zip(*SIZES, strict=True))
    images = 100 * torch.rand(len(SIZES), height, width, 4, dtype=dtype)
    mask = torch.zeros(len(SIZES), height, width, dtype=torch.bool)
    for row, (own_height, own_width) in enumerate(SIZES):
        mask[row, :own_height, :own_width] = True
    images[:, :, :, 3] = mask
    return images, mask


@pytest.mark.parametrize("grid", KINDS, ids=str)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_padding_and_neighbours_change_nothing(grid, positions):
    images, mask = padded()
    regions = ImageFront(3, grid=grid, positions=positions).double().eval()
    together = regions(images, mask)
    for row, (height, width) in enumerate(SIZES):
        alone = regions(images[row : row + 1, :height, :width], mask[row : row + 1, :height, :width])
        rows, columns = regions.shape(height, width)
        assert int(together.mask[row].sum()) == rows * columns == alone.vectors.shape[1]
        assert together.mask[row, : rows * columns].all()
        torch.testing.assert_close(together.vectors[row, : rows * columns], alone.vectors[0])
        assert (together.vectors[row, rows * columns :] == 0).all()


def test_a_grid_of_whole_images_is_torchs_own_layers():
    torch.manual_seed(2)
    grid = GRIDS.build({"kind": "convolutional", "sizes": [8, 16], "norm": "batch"}, 3).train()
    first, second = (stage.layers[0] for stage in grid.stages)
    plain = nn.Sequential(
        first, nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        second, nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
    )  # fmt: skip
    images, mask = torch.randn(3, 3, 7, 9), torch.ones(3, 7, 9, dtype=torch.bool)
    found, real = grid(images, mask)
    torch.testing.assert_close(found, plain(images))
    assert real.shape == (3, 2, 3) and bool(real.all()) and grid.stride == 4


def test_norms_over_a_part_are_those_of_the_part_alone():
    torch.manual_seed(3)
    x = torch.randn(2, 16, 5, 6, dtype=torch.float64, requires_grad=True)
    mask = torch.zeros(2, 5, 6, dtype=torch.bool)
    mask[0, :5, :2] = mask[1, :3, :6] = True
    group = GroupNorm(16).double()
    nn.init.normal_(group.norm.weight)
    nn.init.normal_(group.norm.bias)
    found = group(x, mask, False)
    wanted = [group.norm(x[:1, :, :, :2]), group.norm(x[1:, :, :3])]
    torch.testing.assert_close(found[:1, :, :, :2], wanted[0])
    torch.testing.assert_close(found[1:, :, :3], wanted[1])
    weight = torch.randn_like(x)
    of_found = torch.autograd.grad((found * weight * mask[:, None]).sum(), x)[0]
    alone = (wanted[0] * weight[:1, :, :, :2]).sum() + (wanted[1] * weight[1:, :, :3]).sum()
    torch.testing.assert_close(of_found, torch.autograd.grad(alone, x)[0])


def test_a_batch_norm_counts_real_places_alone():
    torch.manual_seed(4)
    x, mask = torch.randn(2, 4, 3, 5), torch.zeros(2, 3, 5, dtype=torch.bool)
    mask[0, :2, :5] = mask[1, :3, :1] = True
    norm, plain = BatchNorm(4), nn.BatchNorm1d(4)
    found = norm(x, mask, False)
    torch.testing.assert_close(found.movedim(1, 3)[mask], plain(x.movedim(1, 3)[mask]))
    torch.testing.assert_close(norm.norm.running_var, plain.running_var)
    single = torch.zeros(2, 3, 5, dtype=torch.bool)
    single[0, 0, 0] = True
    assert norm(x, single, False).isfinite().all()  # of one place there is no deviation: the known one is taken


def test_the_scale_comes_first():
    images, mask = padded()
    regions = ImageFront(3, grid={"kind": "convolutional", "sizes": [4]}).double().eval()
    regions.scale([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    found = regions(images, mask)
    plain = ImageFront(3, grid={"kind": "convolutional", "sizes": [4]}).double().eval()
    plain.load_state_dict(regions.state_dict())  # the scale is no weight
    plain.scale([0.0] * 3, [1.0] * 3)
    scaled = (images - torch.tensor([1.0, 2.0, 3.0, 0.0])) / torch.tensor([4.0, 5.0, 6.0, 1.0])
    torch.testing.assert_close(found.vectors, plain(scaled, mask).vectors)


def test_positions_tell_places_of_one_colour_apart():
    image, mask = torch.tensor([80.0, 1.0]).expand(1, 16, 16, 2), torch.ones(1, 16, 16, dtype=torch.bool)
    for positions, apart in (("none", False), ("sinusoidal", True), ("learned", True)):
        regions = ImageFront(1, grid={"kind": "convolutional", "sizes": [4, 4]}, positions=positions).eval()
        inner = regions(image, mask).vectors[0].unflatten(0, (4, 4))[1:3, 1:3].flatten(0, 1)
        assert (inner - inner[0]).abs().max().gt(1e-4) == apart, positions


def test_pixels_moved_by_whole_steps_are_those_pixels():
    images, mask = padded()
    pixels = images[..., :3].movedim(3, 1)
    still = torch.eye(2, dtype=torch.float64).expand(4, 2, 2)
    found = moved(pixels, mask, still, torch.tensor([[1.0, 2.0]], dtype=torch.float64).expand(4, 2))
    for row, (height, width) in enumerate(SIZES):
        own = pixels[row, :, :height, :width]
        right = torch.arange(width).add(1).clamp(max=width - 1)
        down = torch.arange(height).add(2).clamp(max=height - 1)
        torch.testing.assert_close(found[row, :, :height, :width], own[:, down][:, :, right])


def test_an_image_turned_by_a_quarter_is_torchs_rot90():
    pixels, mask = torch.rand(2, 3, 6, 6), torch.ones(2, 6, 6, dtype=torch.bool)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]]).expand(2, 2, 2)
    found = moved(pixels, mask, quarter, torch.zeros(2, 2))
    torch.testing.assert_close(found, pixels.rot90(1, (2, 3)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("setting", [{"shift": 2.0}, {"stretch": 0.3}, {"slant": 0.3}, {"turn": 20.0}, {"noise": 0.1}])
def test_jitter_acts_in_training_alone(setting):
    torch.manual_seed(5)
    images, mask = padded(torch.float32)
    regions = ImageFront(3, grid={"kind": "convolutional", "sizes": [4]}, jitter={"kind": "affine", **setting})
    first, second = regions.train()(images, mask).vectors, regions(images, mask).vectors
    assert (first - second).abs().max() > 1e-3
    first, second = regions.eval()(images, mask).vectors, regions(images, mask).vectors
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_no_jitter_moves_an_image_little_by_little():
    pixels, mask = functional.pad(torch.ones(1, 1, 4, 4), (4, 4, 4, 4)), torch.ones(1, 12, 12, dtype=torch.bool)
    jitter = JITTERS.build({"kind": "affine", "shift": 1.0, "stretch": 0.1, "slant": 0.1, "turn": 5.0})
    mean = torch.stack([jitter(pixels, mask) for _ in range(100)]).mean(dim=0)
    assert 0.9 < mean[0, 0, 5:7, 5:7].mean() <= 1.0 and mean[0, 0, :2].abs().max() < 1e-6


def test_wrong_settings_are_named():
    for grid, message in (
        (
            {"kind": "convolutional", "sizes": [2, 3], "strides": [2]},
            r"\[grid.strides\] 1 were given for 2 stages \(sizes\). Give one a stage",
        ),
        (
            {"kind": "convolutional", "sizes": [2], "width": 4},
            r"\[grid.width\] 4 was given; windows have a middle, so it must be odd",
        ),
        ({"kind": "convolutional", "sizes": []}, r"\[grid.sizes\]"),
        ({"kind": "convolutional", "sizes": [4, 4], "width": [3]}, r"\[grid.width\] 1 were given for 2 stages"),
        ({"kind": "convolutional", "sizes": [4, 4], "width": [3, 2]}, r"\[grid.width\] 2 was given"),
    ):
        with pytest.raises(SettingsError, match=message):
            ImageFront(1, grid=grid)


@pytest.mark.parametrize(("width", "reach"), [(5, 2 + 2 * 4 + 2 * 8), ([5, 5, 1], 2 + 2 * 4), ([1, 1, 3], 8)])
def test_a_place_has_seen_what_the_widths_say(width: int | list[int], reach: int):
    """Pixels before its own first one on which it depends: the gradient says which."""
    torch.manual_seed(7)
    grid = GRIDS.build({"kind": "convolutional", "sizes": [9, 9, 9], "strides": [4, 2, 1], "width": width,
                        "reduce": "stride", "norm": "none"}, 1)  # fmt: skip
    pixels = torch.rand(1, 1, 8, 96, requires_grad=True)
    seen, _ = grid(pixels, torch.ones(1, 8, 96, dtype=torch.bool))
    seen[0, :, 0, 6].sum().backward()
    assert pixels.grad is not None
    touched = pixels.grad[0, 0].abs().sum(dim=0).nonzero().flatten()
    assert int(touched.min()) == 6 * 8 - reach


def test_a_gate_scales_what_is_read_and_not_where():
    torch.manual_seed(6)
    attention = ATTENTIONS.build({"kind": "additive", "hidden_size": 5, "coverage": "sum"}, 3, 4)
    gated = Gated(attention)
    encoded, query = torch.randn(2, 7, 4), torch.randn(2, 6, 3)
    memory = gated.remember(encoded)
    seen, plain = gated(query, memory, gated.initial(memory)), attention(query, memory)
    torch.testing.assert_close(seen.weights, plain.weights)
    torch.testing.assert_close(seen.context, plain.context * gated.gate(query).sigmoid())
    step = gated(query[:, 0], memory)
    torch.testing.assert_close(step.context, seen.context[:, 0])
