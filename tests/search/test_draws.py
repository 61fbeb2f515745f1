import numpy as np
import pytest

from unrolled.search.draws import philox, uniform


@pytest.mark.parametrize(
    "counter, key, expected",
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_published_words(counter, key, expected):
    """The known answers of Random123, the library of its authors."""
    words = [np.array([int(word, 16) for word in text.split()], dtype=np.uint64) for text in (counter, key, expected)]
    np.testing.assert_array_equal(philox(words[0][:, None], words[1])[:, 0], words[2])


def test_uniform_is_uniform_in_every_direction():
    numbers = np.arange(20_000)
    for drawn in (
        uniform(3, numbers, np.zeros_like(numbers), 0),
        uniform(3, np.zeros_like(numbers), numbers, 0),
        np.array([uniform(3, np.arange(100), np.zeros(100, int), step) for step in range(200)]).ravel(),
        np.array([uniform(seed, np.arange(100), np.zeros(100, int), 0) for seed in range(200)]).ravel(),
    ):
        assert drawn.min() >= 0 and drawn.max() < 1
        assert len(np.unique(drawn)) == 20_000
        counts = np.bincount((drawn * 50).astype(int), minlength=50)
        assert ((counts - 400) ** 2 / 400).sum() < 85.4  # χ² with 49 degrees of freedom, 99.9 %
        assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.03
