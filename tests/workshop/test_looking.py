"""Regions of an image that are erased: how they are cut, and what their loss says of an attention that is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.models import NumbersToText
from unrolled.text.images import ImageReader
from unrolled.text.readers import ReadText
from unrolled.text.tokenizer import TOKENIZERS
from unrolled.workshop.looking import effects, overlays, tiles, trust


@given(rows=st.integers(1, 30), columns=st.integers(1, 30), most=st.integers(1, 60))
def test_tiles_cover_every_place_and_are_no_more_than_asked(rows, columns, most):
    found = tiles(rows, columns, most)
    assert found.shape == (rows, columns) and sorted(set(found.ravel())) == list(range(found.max() + 1))
    assert found.max() + 1 <= most
    if rows * columns <= most:
        assert found.max() + 1 == rows * columns


@pytest.fixture(scope="module")
def made():
    torch.manual_seed(1)
    target = TOKENIZERS.build("whitespace")
    target.train(["one two three"])
    reader = ImageReader(colour="grey")
    reader.mean = np.array([100.0])
    text = ReadText(reader, target)
    front = {"kind": "image", "grid": {"kind": "convolutional", "sizes": [4], "norm": "none", "strides": [4]}}
    network = NumbersToText(
        1,
        target.vocabulary_size,
        front=front,
        encoder="plain",
        decoder={"kind": "query_before", "attention": "bilinear"},
    ).eval()
    reader.stride = network.front.stride
    return network, text


def test_an_effect_is_the_log_probability_without_the_region(made):
    network, text = made
    pixels = np.random.default_rng(1).integers(0, 256, (8, 12, 1)).astype(np.uint8)
    ids = text.target.encode("two one").ids
    tiled = tiles(2, 3)
    found = effects(network, text, pixels, ids, tiled, device="cpu")
    erased = pixels.copy()
    erased[4:8, 8:12] = 100  # the last tile, at the mean
    (whole,) = overlays(network, text, [pixels], ["two one"], device="cpu")
    (without,) = overlays(network, text, [erased], ["two one"], device="cpu")
    np.testing.assert_allclose(found[:, 5], np.subtract(whole.log_probs, without.log_probs), atol=1e-6)


def test_an_image_of_the_mean_has_nothing_to_lose(made):
    network, text = made
    pixels = np.full((8, 12, 1), 100, np.uint8)
    (one,) = overlays(network, text, [pixels], ["one two"], device="cpu")
    found = trust(network, text, [one], device="cpu")
    assert found["top_drop"].value == pytest.approx(0, abs=1e-6) and "region" in found["top_drop"].sentence


def test_pictures_of_a_batch_are_those_of_each_alone(made):
    network, text = made
    draw = np.random.default_rng(2)
    images = [draw.integers(0, 256, size).astype(np.uint8) for size in ((8, 12, 1), (5, 3, 1), (9, 4, 1))]
    captions = ["one two", "three", "two"]
    together = overlays(network, text, images, captions, device="cpu")
    for image, caption, one in zip(images, captions, together, strict=True):
        (alone,) = overlays(network, text, [image], [caption], device="cpu")
        np.testing.assert_allclose(one.weights, alone.weights, atol=1e-6)
        np.testing.assert_allclose(one.log_probs, alone.log_probs, atol=1e-5)
        np.testing.assert_allclose(one.weights.sum(axis=(1, 2)), 1, atol=1e-5)
