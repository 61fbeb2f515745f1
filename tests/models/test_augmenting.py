"""What is masked, moved and stretched stays inside a row, is bounded, and never happens outside training."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import SettingsError
from unrolled.models.augmenting import AUGMENTATIONS, SpecAugment, at_tempo

lengths = st.lists(st.integers(1, 23), min_size=1, max_size=5)


def frames_of(sizes, channels=5):
    generator = torch.Generator().manual_seed(sum(sizes))
    mask = torch.arange(max(sizes)) < torch.tensor(sizes).unsqueeze(1)
    frames = torch.rand(len(sizes), max(sizes), channels, generator=generator) + 1
    return frames.masked_fill(~mask.unsqueeze(2), 0.0), mask


@settings(deadline=None, max_examples=40)
@given(lengths, st.integers(0, 9), st.integers(0, 4), st.integers(0, 100))
def test_masks_are_stretches_no_longer_than_told(sizes, wide, high, seed):
    torch.manual_seed(seed)
    frames, mask = frames_of(sizes)
    part = SpecAugment(time_masks=1, time_width=wide, time_share=0.5, channel_masks=1, channel_width=high)
    found, after = part(frames, mask)
    assert torch.equal(after, mask) and torch.equal(found[found != 0], frames[found != 0])
    for row, size in enumerate(sizes):
        gone = (found[row, :size] == 0).numpy()
        times, channels = np.flatnonzero(gone.all(axis=1)), np.flatnonzero(gone.all(axis=0))
        if len(channels) < 5 and len(times) < size:
            assert len(times) <= min(wide, size // 2) and len(channels) <= high
            for places in (times, channels):
                assert not len(places) or np.array_equal(places, np.arange(places[0], places[-1] + 1))
            assert gone.sum() == len(times) * 5 + len(channels) * size - len(times) * len(channels)


def test_nothing_changes_outside_training_and_masks_do_in_it():
    part = AUGMENTATIONS.build({"kind": "specaugment", "tempo": 0.3})
    frames, mask = frames_of([20, 7])
    assert not torch.equal(part(frames, mask)[0][:, :7], frames[:, :7])
    part.eval()
    again, after = part(frames, mask)
    assert again is frames and after is mask


def test_every_width_and_place_comes_up():
    torch.manual_seed(1)
    frames, mask = frames_of([10] * 2000, 3)
    found, _ = SpecAugment(time_masks=1, time_width=4, time_share=0.4, channel_masks=0)(frames, mask)
    gone = (found == 0).all(dim=2)
    widths = torch.bincount(gone.sum(dim=1), minlength=5)
    assert len(widths) == 5 and (widths > 330).all()
    assert gone[:, 0].any() and gone[:, -1].any()


@settings(deadline=None, max_examples=40)
@given(lengths, st.floats(0.6, 1.7))
def test_another_tempo_interpolates_as_numpy_does(sizes, factor):
    frames, mask = frames_of(sizes, 2)
    found, after = at_tempo(frames, mask, torch.full((len(sizes),), factor))
    for row, size in enumerate(sizes):
        count = int(after[row].sum())
        assert abs(count - max(1, size / factor)) <= 1 and not found[row, count:].any()
        at = np.minimum(np.arange(count, dtype=np.float32) * np.float32(factor), size - 1)
        for channel in range(2):
            wanted = np.interp(at, np.arange(size), frames[row, :size, channel].numpy())
            assert np.allclose(found[row, :count, channel].numpy(), wanted, atol=1e-5)


def test_gradients_reach_the_frames_between():
    frames = torch.tensor([[[1.0], [3.0], [5.0]]], requires_grad=True)
    found, _ = at_tempo(frames, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1.5]))
    assert found.flatten().tolist() == [1.0, 4.0]
    found[0, 1].sum().backward()
    assert frames.grad is not None and frames.grad.flatten().tolist() == [0.0, 0.5, 0.5]


def test_settings_have_ranges():
    with pytest.raises(SettingsError, match=r"\[augment\.tempo\] 1\.5 was given"):
        AUGMENTATIONS.complete({"kind": "specaugment", "tempo": 1.5}, "augment")
