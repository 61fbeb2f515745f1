"""The oracle is the library's own trainer: ours must find pieces at least as good."""

import itertools
import json
import math
import time
from pydoc_data.topics import topics

import numpy as np
import pytest
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers, trainers

from unrolled.text import unigram
from unrolled.text.counting import count_words
from unrolled.text.unigram import learn_pieces

LINES = "\n".join(text for _, text in sorted(topics.items())).split("\n")[:4000]


def counted():
    return count_words((line.split() for line in LINES), lambda word: ["▁" + word])


def alphabet_of(counts):
    return sorted({character for word, _ in counts for character in word})


def described(pieces, counts):
    """How many symbols the words need, and how unlikely the best cuts are."""
    library = Library(models.Unigram([("<unk>", 0.0), *pieces], unk_id=0))
    library.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("\n")
    score = dict(pieces)
    cut = [(library.encode(word).tokens, count) for word, count in counts]
    return sum(len(tokens) * count for tokens, count in cut), -sum(
        count * sum(score[token] for token in tokens) for tokens, count in cut
    )


@pytest.mark.parametrize("size", [200, 1000])
def test_pieces_are_as_good_as_the_librarys(size):
    counts = counted()
    ours = learn_pieces(counts, alphabet_of(counts), size)
    trainer = trainers.UnigramTrainer(
        vocab_size=size + 1, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    library = Library(models.Unigram())
    library.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("\n")
    library.train_from_iterator(("\n".join([word] * count) for word, count in counts), trainer)
    theirs = [(piece, score) for piece, score in json.loads(library.to_str())["model"]["vocab"] if piece != "<unk>"]
    assert len(ours) == size >= len(theirs)
    for mine, other in zip(described(ours, counts), described(theirs, counts), strict=True):
        assert mine <= 1.03 * other


def test_every_character_is_a_piece_and_scores_are_log_probabilities():
    counts = counted()
    alphabet = alphabet_of(counts)
    pieces = learn_pieces(counts, alphabet, 300)
    assert set(alphabet) <= {piece for piece, _ in pieces}
    assert len({piece for piece, _ in pieces}) == len(pieces) == 300
    assert [score for _, score in pieces] == sorted((score for _, score in pieces), reverse=True)
    assert all(score < 0 for _, score in pieces)
    assert sum(math.exp(score) for _, score in pieces) < 1.1


def test_expected_counts_are_those_of_all_cuts():
    """Against the sum over every way to cut each word."""
    counts = [("abab", 3), ("ba", 2), ("a", 5)]
    names, worth, pieces = unigram._seeds(unigram._lay_out(counts, set("ab")), ["a", "b"], 10)
    score = np.log(worth / worth.sum())
    expected = unigram._expected_counts(unigram._lay_out(counts, set("ab")), pieces, score)
    wanted = dict.fromkeys(names, 0.0)
    for word, count in counts:
        cuts = []
        for borders in itertools.product([0, 1], repeat=len(word) - 1):
            ends = [i + 1 for i, border in enumerate(borders) if border] + [len(word)]
            parts = [word[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
            if all(part in names for part in parts):
                cuts.append((parts, math.exp(sum(score[names.index(part)] for part in parts))))
        total = sum(chance for _, chance in cuts)
        for parts, chance in cuts:
            for part in parts:
                wanted[part] += count * chance / total
    assert {"ab", "a", "b"} <= set(names)
    np.testing.assert_allclose(expected, [wanted[name] for name in names], rtol=1e-12)


def test_digamma():
    """ψ(1) = -γ, ψ(1/2) = -γ - 2 ln 2, ψ(100) from Abramowitz and Stegun, table 6.3."""
    gamma = 0.5772156649015329
    values = unigram._digamma(np.array([1.0, 0.5, 10.0]))
    np.testing.assert_allclose(values, [-gamma, -gamma - 2 * math.log(2), 2.251752589066721], rtol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 5, 1000])
def test_little_text(size):
    pieces = learn_pieces([("▁ab", 1), ("c" * 200, 1), ("x\n", 3)], ["▁", "a", "b", "c"], size)
    assert {"▁", "a", "b", "c"} <= {piece for piece, _ in pieces}
    assert len(pieces) <= max(4, size)
    assert learn_pieces([("z", 3)], ["a"], size) == [("a", -1.0)]


def test_many_words_take_seconds():
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    different = {"▁" + "".join(random.choice(letters, length)) for length in random.integers(3, 14, 20_000)}
    started = time.process_time()
    pieces = learn_pieces([(word, 1) for word in sorted(different)], ["▁", *letters], 4000)
    assert len(pieces) == 4000
    assert time.process_time() - started < 20
