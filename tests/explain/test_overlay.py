"""Where words looked in an image: centres, boxes, what is drawn and what is refused."""

import json

import numpy as np
import pytest

from unrolled.base.errors import UsageError
from unrolled.explain.explanation import Measure
from unrolled.explain.overlay import MOST, Overlay, centre, inside


def picture(**changed):
    weights = np.zeros((2, 2, 3), np.float32)
    weights[0, 0, 0] = 1
    weights[1] = 1 / 6
    given = {
        "pixels": np.arange(7 * 10, dtype=np.uint8).reshape(7, 10, 1),
        "words": ["one", "two $"],
        "weights": weights,
        "stride": 4,
        "log_probs": [-0.1, -1.0],
        "faithfulness": {"top_drop": Measure(0.5, 0.1, 2, "A sentence.", "nats")},
    }
    return Overlay(**{**given, **changed})


def test_the_centre_is_the_mean_of_the_middles_of_places_as_far_as_they_lie_in_the_image():
    one = picture()
    assert one.centre(0) == (2.0, 2.0)
    x, y = one.centre(1)  # columns of 4, 4 and 2 pixels, rows of 4 and 3
    assert (x, y) == pytest.approx(((2 + 6 + 9) / 3, (2 + 5.5) / 2))
    assert centre(np.array([[0.0, 1.0]]), 4, (4, 8)) == (6.0, 2.0)
    assert inside((2, 2), (0, 0, 4, 4)) and not inside((5, 2), (0, 0, 4, 4)) and inside((4, 4), (0, 0, 4, 4))


def test_numbers_and_pictures_are_written(tmp_path):
    one = picture(boxes=[(0, 0, 4, 4), None], end=np.full((2, 3), 1 / 6))
    tree = json.loads(one.to(tmp_path / "x.json").read_text())
    assert [word["word"] for word in tree["words"]] == ["one", "two $"] and tree["boxes"] == [[0, 0, 4, 4], None]
    assert tree["faithfulness"]["top_drop"]["value"] == 0.5 and tree["stride"] == 4
    svg = one.to(tmp_path / "x.svg").read_text()
    assert svg.startswith("<svg") and "one" in svg and "A sentence." in svg and "data:image/png" in svg
    assert svg == one.svg()  # the same again
    assert (tmp_path / "x.png").exists() is False and one.to(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "<title>one two $</title>" in one.to(tmp_path / "x.html").read_text()


def test_colour_is_darkened_where_nobody_looked_and_grey_reddened_where_somebody_did(tmp_path):
    from PIL import Image

    weights = np.zeros((1, 1, 2), np.float32)
    weights[0, 0, 0] = 1
    for channels, wanted in ((3, "dark"), (1, "red")):
        pixels = np.full((8, 16, channels), 200, np.uint8)
        one = picture(pixels=pixels, words=["x"], weights=weights, stride=8, log_probs=[0.0], faithfulness=None)
        drawn = np.asarray(Image.open(one.to(tmp_path / f"{wanted}.png")).convert("RGB")).astype(int)
        middle = drawn[drawn.shape[0] * 3 // 4]
        left, right = middle[len(middle) // 8], middle[len(middle) * 7 // 8]
        if wanted == "dark":
            assert left.tolist() == [200, 200, 200] and right.max() < 100
        else:
            assert left[0] > left[2] + 100 and right.tolist() == [200, 200, 200]


def test_a_terminal_shows_grids_in_shades_as_wide_as_it_is():
    text = picture().text(40)
    assert text.splitlines()[:3] == ["one  (0.90)", "  █", "  "]
    assert "A sentence." in text and str(picture()) == picture().text()
    assert all(len(line) <= 4 for line in picture().text(4).splitlines()[1:3])


def test_many_words_are_cut_and_said(tmp_path):
    count = MOST + 3
    one = picture(words=["w"] * count, weights=np.full((count, 2, 3), 1 / 6), log_probs=[-1.0] * count)
    assert "3 more words are not shown." in one.svg()


def test_weights_that_do_not_fit_the_image_are_refused():
    with pytest.raises(UsageError, match=r"weights are \[1, 2, 3\]; 2 words over an image of 10 × 7 pixels"):
        picture(weights=np.zeros((1, 2, 3), np.float32))
