import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from unrolled.base.errors import UnrolledError, UsageError
from unrolled.explain.explanation import Explanation, Measure, check_suffix


def test_it_holds_what_it_was_given_and_cannot_change(small: Explanation) -> None:
    assert small.source == ("black", "cat") and small.target_text == "le chat noir"
    assert small.weights.dtype == np.float32
    assert list(small.strongest()) == [
        (0, 1, pytest.approx(0.8)),
        (1, 1, pytest.approx(0.97)),
        (2, 0, pytest.approx(0.6)),
    ]
    with pytest.raises(ValueError, match="read-only"):
        small.weights[0, 0] = 1


@pytest.mark.parametrize(
    "change, message",
    [
        ({"weights": [[1.0, 0.0]]}, r"weights have the shape \(1, 2\) where the words give \(3, 2\)"),
        ({"weights": [[0.5, 0.5], [0.5, 0.5], [0.5, float("nan")]]}, r"weights must lie in \[0, 1\]"),
        ({"weights": [[0.5, 0.5], [0.5, 0.5], [0.5, 2.0]]}, r"weights must lie in \[0, 1\]; 0.5 to 2 were given"),
        ({"end_column": [0.0]}, r"end_column have the shape \(1,\)"),
        ({"end_row": [0.0]}, r"end_row have the shape \(1,\)"),
        ({"log_probs": [-1.0]}, "1 log-probabilities for 3 target words"),
        ({"gold": [(2, 0)]}, r"the gold link \(2, 0\) is outside 2 × 3 words"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    given = {"source": ["a", "b"], "target": ["c", "d", "e"], "weights": np.full((3, 2), 0.5), **change}
    with pytest.raises(UsageError, match=message):
        Explanation(**given)


@pytest.mark.parametrize("suffix", [".svg", ".png", ".json", ".html", ".SVG"])
def test_every_ending_writes_its_kind(small: Explanation, tmp_path: Path, suffix: str) -> None:
    path = small.to(tmp_path / "new" / f"picture{suffix}")
    start = {".svg": b"<svg", ".png": b"\x89PNG", ".json": b"{", ".html": b"<!doctype html>"}[suffix.lower()]
    assert path.read_bytes().startswith(start)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name, given", [("a.gif", "ends in '.gif'"), ("a", "has no ending")])
def test_another_ending_is_refused_with_the_list(small: Explanation, tmp_path: Path, name: str, given: str) -> None:
    with pytest.raises(UsageError, match=rf"{given}, which is no kind of picture. Known: .svg, .png, .json, .html."):
        small.to(tmp_path / name)
    assert not list(tmp_path.iterdir())
    assert check_suffix("x.PNG") == ".png"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    small: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnrolledError, match=r"a.json: cannot be written \(No space left on device\). Free some space"):
        small.to(tmp_path / "a.json")
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"] and (tmp_path / "a.json").read_text() == "old"


@pytest.mark.parametrize("place", ["file/a.svg", "a\0.svg"])
def test_a_place_that_cannot_be_written_is_named(small: Explanation, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnrolledError, match="cannot be written"):
        small.to(tmp_path / place)


def test_json_has_the_numbers(small: Explanation, hostile: Explanation, tmp_path: Path) -> None:
    tree = json.loads(small.to(tmp_path / "a.json").read_bytes())
    assert tree["source"] == {"text": "black cat", "words": ["black", "cat"], "features": 0}
    assert tree["weights"] == [[0.1, 0.8], [0.03, 0.97], [0.6, 0.3]]
    assert tree["target"]["log_probs"] == [-0.1, -0.5, -2.0] and tree["gold"] == [[1, 1], [0, 2]]
    assert tree["faithfulness"]["top_agreement"]["chance"] == 0.5
    assert json.loads(hostile.to(tmp_path / "b.json").read_bytes())["source"]["words"][1] == "]]>"


def test_an_empty_output_can_be_drawn_too(tmp_path: Path) -> None:
    nothing = Explanation(source=["a"], target=[], weights=[], log_probs=[])
    for suffix in (".svg", ".png", ".json", ".html"):
        assert nothing.to(tmp_path / f"a{suffix}").stat().st_size > 100
    assert "no words" in nothing.text()


@pytest.mark.parametrize(
    "measure, shown",
    [
        (Measure(0.856, None, 9, "", "%"), "86 %"),
        (Measure(1.234, None, 9, "", "nats"), "1.23 nats"),
        (Measure(-0.5, None, 9, ""), "-0.50"),
        (Measure(-0.001, None, 9, "", "nats"), "0.00 nats"),
        (Measure(None, None, 0, ""), "–"),
    ],
)
def test_a_measure_reads_well(measure: Measure, shown: str) -> None:
    assert measure.shown(measure.value) == shown
