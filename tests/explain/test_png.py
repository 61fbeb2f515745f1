import io
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib import font_manager
from PIL import Image

from unrolled.explain import png as module
from unrolled.explain.explanation import Explanation
from unrolled.explain.picture import Box, picture
from unrolled.explain.png import png


def opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def test_pixels_darken_with_the_weight() -> None:
    one = Explanation(source=["a", "b", "c"], target=["x"], weights=[[0.0, 0.04, 0.96]])
    image = opened(png(one)).convert("RGB")
    tiles = [box for box in picture(one).shapes if isinstance(box, Box) and box.ink == "tile"][:3]
    reds = []
    for box in tiles:
        reds.append(np.asarray(image)[int(2 * (box.y + 7)), int(2 * (box.x + 7)), 0])
    # tile 0xef red, heat 0x08 red, blended by the weight
    assert [int(red) for red in reds] == pytest.approx([0xEF * (1 - w) + 0x08 * w for w in (0, 0.04, 0.96)], abs=1)


def test_it_is_twice_the_size_of_the_svg_and_carries_its_words(small: Explanation) -> None:
    image = opened(png(small))
    layout = picture(small)
    assert abs(image.width - 2 * layout.width) <= 2 and abs(image.height - 2 * layout.height) <= 2
    assert (
        image.info["Title"] == "attention: black cat → le chat noir" and "noir: black 60 %" in image.info["Description"]
    )
    assert png(small) == png(small)


def test_strange_letters_make_no_noise(hostile: Explanation, make: Callable[..., Explanation]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert opened(png(hostile)).width > 0
        assert opened(png(make(["東京", "שלום", "عربي", "$x^2$", "\U00012000"], ["नमस्ते", "👍🏽"]))).width > 0


def test_letters_that_no_font_has_are_confessed(
    make: Callable[..., Explanation], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    module._fonts.cache_clear()
    known, unknown = make(["cat"], ["кот"]), make(["cat"], ["猫"])
    assert opened(png(known)).height <= 2 * picture(known).height + 2
    assert opened(png(unknown)).height == pytest.approx(2 * picture(unknown).height + 52, abs=2)
    module._fonts.cache_clear()


def test_a_large_picture_has_all_its_cells(make: Callable[..., Explanation]) -> None:
    many = [f"w{number}" for number in range(60)]
    one = make(many, many[:7], gold=[(0, 0)])
    image = np.asarray(opened(png(one)).convert("RGB"))
    heat = [box for box in picture(one).shapes if isinstance(box, Box) and box.ink == "heat" and box.title]
    assert len(heat) > 20
    for box in heat:
        expected = 0xEF * (1 - box.opacity) + 0x08 * box.opacity
        assert image[int(2 * (box.y + 9)), int(2 * (box.x + 9)), 0] == pytest.approx(expected, abs=2)
