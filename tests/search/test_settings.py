import dataclasses

import pytest

from unrolled.base.errors import SettingsError
from unrolled.base.settings import complete
from unrolled.search import SEARCHERS, SearchSettings


@pytest.mark.parametrize(
    "given_, match",
    [
        (
            {"kind": "bean"},
            r"\[search.kind\] no searcher is called 'bean'. Did you mean 'beam'\? Known: argmax, beam, samp",
        ),
        ({"beam": 0}, r"\[search.beam\] 0 was given; a beam keeps at least 1 prefix .* Set beam to 1 or more."),
        ({"nbest": 0}, r"\[search.nbest\] 0 was given; at least 1 hypothesis is returned. Set nbest to 1 or more."),
        (
            {"nbest": 6},
            r"\[search.nbest\] 6 was given, but a beam of 5 finds at most 5. Raise beam to 6 or lower nbest.",
        ),
        ({"kind": "argmax", "nbest": 2}, r"\[search.nbest\] 2 was given, but argmax finds 1 hypothesis."),
        (
            {"length_penalty": -0.1},
            r"\[search.length_penalty\] -0.1 was given; a negative one would favour short outputs",
        ),
        ({"length_penalty": 11}, r"\[search.length_penalty\] 11.0 was given; it is an exponent, 0 to 10."),
        ({"length_normalisation": "none"}, r"\[search.length_normalisation\] 'none' was given; .*'gnmt' or 'mean'"),
        ({"coverage_penalty": float("nan")}, r"\[search.coverage_penalty\] nan was given"),
        ({"coverage_penalty": float("inf")}, r"\[search.coverage_penalty\] inf was given"),
        ({"min_length": -1}, r"\[search.min_length\] -1 was given; 0 allows empty outputs."),
        ({"max_length": 0}, r"\[search.max_length\] 0 was given; an output has room for at least 1 symbol"),
        ({"min_length": 5, "max_length": 4}, r"\[search.min_length\] 5 was given, but max_length is 4."),
        ({"max_length_ratio": -1}, r"\[search.max_length_ratio\] -1.0 was given"),
        ({"max_length_constant": -1}, r"\[search.max_length_constant\] -1 was given"),
        ({"no_repeat_ngram": -1}, r"\[search.no_repeat_ngram\] -1 was given; 0 switches it off."),
        (
            {"temperature": 0},
            r"\[search.temperature\] 0.0 was given; a temperature is above 0. .* set top_k to 1, or kind to argmax.",
        ),
        ({"temperature": float("inf")}, r"\[search.temperature\] inf was given"),
        ({"top_k": -1}, r"\[search.top_k\] -1 was given; 0 takes all symbols."),
        ({"top_p": 0}, r"\[search.top_p\] 0.0 was given; it is a share of the probability, above 0 and at most 1."),
        ({"top_p": 1.5}, r"\[search.top_p\] 1.5 was given"),
        ({"seed": -1}, r"\[search.seed\] -1 was given; a seed is a whole number."),
        ({"beam": 2.5}, r"\[search.beam\] 2.5 was given"),
        ({"beam": True}, r"\[search.beam\] true was given where a whole number is expected."),
        ({"replace_unknown": "maybe"}, r"\[search.replace_unknown\] 'maybe' was given"),
    ],
)
def test_wrong_values_teach(given_, match):
    with pytest.raises(SettingsError, match=match):
        SearchSettings(**given_)


def test_sampling_may_draw_more_than_a_beam_holds():
    assert SearchSettings(kind="sampling", nbest=50).nbest == 50


def test_the_signature_is_the_schema():
    tree = complete(SearchSettings, {"beam": "3", "top_p": 1}, "search")
    assert SearchSettings(**tree) == SearchSettings(beam=3)
    assert set(tree) == {field.name for field in dataclasses.fields(SearchSettings)}
    with pytest.raises(SettingsError, match=r"\[search\] no setting .* is called 'beams'. Did you mean 'beam'\?"):
        complete(SearchSettings, {"beams": 3}, "search")


def test_settings_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SearchSettings().beam = 3
    assert dataclasses.replace(SearchSettings(), beam=2).beam == 2


def test_every_setting_is_explained():
    assert all(field.name in SearchSettings.__doc__ for field in dataclasses.fields(SearchSettings))
    assert all(kind in SearchSettings.__doc__ for kind in SEARCHERS)
