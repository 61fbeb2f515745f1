"""How far the vectors of one word lie apart by sense: ``python recipes/senses.py MODEL [map.svg]``.

MODEL is one of contextual vectors. Prints the mean cosine of two places of ``stick`` within a sense and across senses,
layer by layer, and draws the places. The sentences were written for this; none is of the training text.
"""

from __future__ import annotations

import sys
from itertools import combinations, product

import numpy as np

import unrolled

THINGS = (
    "He leaned on his stick and looked at the road .",
    "The old man had a stick in his hand .",
    "She picked up a stick from the ground .",
    "The dog ran after the stick .",
    "With a long stick the boy struck the horse .",
    "A stick lay on the floor of the room .",
    "He broke the stick in two .",
    "They drove the cattle with a stick .",
)
DEEDS = (
    "You have to stick to the plan .",
    "We will stick with the old one .",
    "They could not stick to their word .",
    "I would stick with him whatever happened .",
    "Please stick to the point .",
    "He did not stick to the rules .",
    "It will stick to your hands .",
    "I 'll stick to what I said .",
)


def places(model: unrolled.Model, sentences: tuple[str, ...]) -> list[np.ndarray]:
    """The vectors [layers, size] of ``stick`` in each sentence, of length 1."""
    found = [one.vectors[one.words.index("stick")] for one in model.embed(list(sentences))]
    return [vector / np.linalg.norm(vector, axis=1, keepdims=True) for vector in found]


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    model = unrolled.load(sys.argv[1])
    things, deeds = places(model, THINGS), places(model, DEEDS)
    within = np.mean([(a * b).sum(1) for one in (things, deeds) for a, b in combinations(one, 2)], axis=0)
    across = np.mean([(a * b).sum(1) for a, b in product(things, deeds)], axis=0)
    right = np.zeros(len(within))
    for place, one in enumerate(things + deeds):
        others = [(other, number < len(things)) for number, other in enumerate(things + deeds) if number != place]
        likeness = np.array([(one * other).sum(1) for other, _ in others])
        kinds = np.array([kind for _, kind in others])
        right += kinds[likeness.argmax(axis=0)] == (place < len(things))
    for layer, (one, two, told) in enumerate(zip(within, across, right / len(things + deeds), strict=True)):
        said = f"layer {layer}: within a sense {one:.3f}, across {two:.3f}; nearest of the same sense {told:.2f}"
        sys.stdout.write(f"{said}\n")
    if len(sys.argv) == 3:
        model.map("stick", THINGS + DEEDS).to(sys.argv[2])


if __name__ == "__main__":
    main()
