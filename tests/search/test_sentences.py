import numpy as np
from table_stepper import batch

from unrolled.base.protocol import END
from unrolled.search import SearchSettings
from unrolled.search.sentences import gather

SOURCES = batch([[4, 4, END], [END]])


def limits(prefixes=None, **given):
    return gather(*SOURCES, SearchSettings(**given), prefixes, None, 9).limits.tolist()


def test_limits_come_from_the_source_unless_given():
    assert limits(max_length_ratio=1.5, max_length_constant=2) == [6, 3]
    assert limits(max_length=8) == [8, 8]


def test_a_limit_leaves_room_for_minimum_and_prefix():
    assert limits(max_length_ratio=0, max_length_constant=0) == [1, 1]
    assert limits(max_length_ratio=1, max_length_constant=0, min_length=2) == [3, 2]
    assert limits([[], [4, 5, 6]], max_length_ratio=1, max_length_constant=0) == [3, 4]


def test_limits_beyond_all_bounds_are_cut():
    assert limits(max_length=10**30) == [2**31 - 1] * 2
    assert limits(max_length_ratio=1e300) == [2**31 - 1] * 2


def test_prefixes_become_a_table():
    found = gather(*SOURCES, SearchSettings(), [[4, 5], []], [3, 1], 9)
    np.testing.assert_array_equal(found.forced, [[4, 5], [-1, -1]])
    np.testing.assert_array_equal(found.numbers, [3, 1])
    assert gather(*SOURCES, SearchSettings(), None, None, 9).forced.shape == (2, 0)
