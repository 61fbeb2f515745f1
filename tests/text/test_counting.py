from collections import Counter

from unrolled.text.counting import count_words


def test_most_frequent_first_then_by_code_point():
    assert count_words([["b", "a"], ["a", "c"]], lambda word: [word]) == [("a", 2), ("b", 1), ("c", 1)]


def test_each_different_word_is_cut_once():
    cut = Counter()

    def letters(word):
        cut[word] += 1
        return list(word)

    assert count_words([["ab", "ab", "b"], ["ab"]], letters) == [("b", 4), ("a", 3)]
    assert cut == {"ab": 1, "b": 1}


def test_frequent_words_are_counted_right_in_bounded_memory():
    most = 50
    lines = ([f"rare{i}", "often", "often"] for i in range(1000))
    counts = count_words(lines, lambda word: [word], most)
    assert counts[0] == ("often", 2000)
    assert len(counts) <= most
