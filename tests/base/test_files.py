"""What is written beside its place, and what a killed process leaves there."""

import os
import signal
import subprocess
import sys
import time

import pytest

from unrolled.base import siblings
from unrolled.base.errors import UnrolledError
from unrolled.base.files import write_beside
from unrolled.base.siblings import clear_abandoned, sibling


def test_a_file_is_there_whole(tmp_path):
    path = write_beside(tmp_path / "new" / "a.txt", b"one")
    write_beside(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(UnrolledError, match=r"a\.txt/b: cannot be written .* choose another place"):
        write_beside(path / "b", b"")


def test_folders_that_were_made_for_a_file_are_gone_where_it_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnrolledError, match=r"new/deep/a\.svg: cannot be written \(No space left on device\)"):
        write_beside(tmp_path / "there" / "new" / "deep" / "a.svg", b"one")
    with pytest.raises(UnrolledError, match="cannot be written"):
        write_beside(tmp_path / "new" / ".." / "there" / "deep" / "a.svg", b"one")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_a_way_back_through_a_folder_that_is_not_there_makes_none(tmp_path):
    assert write_beside(tmp_path / "new" / ".." / "a.svg", b"one").read_bytes() == b"one"
    assert [path.name for path in tmp_path.rglob("*")] == ["a.svg"]


def gone():
    """The number of a process that was and is no more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_only_what_was_abandoned_is_cleared(tmp_path, monkeypatch):
    place = tmp_path / "model"
    mine = sibling(place)
    monkeypatch.setattr(os, "getpid", gone)
    dead, other_target = sibling(place), sibling(tmp_path / "other")
    monkeypatch.setattr(siblings, "_machine", lambda: "abcdef")
    elsewhere, elsewhere_old = sibling(place), sibling(place)
    monkeypatch.undo()
    unknown, unknown_old = tmp_path / ".model.0badcafe.writing", tmp_path / ".model.1badcafe.writing"
    every = [mine, dead, other_target, elsewhere, elsewhere_old, unknown, unknown_old]
    for index, part in enumerate(every):
        if index % 2:
            part.write_text("half")
        else:
            part.mkdir()
            (part / "weights").write_text("half")
    for part in (elsewhere_old, unknown_old):
        os.utime(part, (time.time() - 100_000,) * 2)
    clear_abandoned(place)
    assert sorted(tmp_path.iterdir()) == sorted([mine, other_target, elsewhere, unknown])


KILLED = """
import os, signal, sys
from pathlib import Path
from unrolled.ship.folder import write
def die(folder):
    (folder / "source.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
write(sys.argv[1], settings={}, tensors={}, text=die, scores={}, card="")
"""


def test_the_next_save_clears_what_a_killed_one_left(tmp_path):
    import torch

    from unrolled.ship.folder import read, write

    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "model")])
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".model.") and (left / "text" / "source.json").exists()
    text = lambda folder: (folder / "source.json").write_text("{}")  # noqa: E731
    write(tmp_path / "model", settings={}, tensors={"a": torch.ones(2)}, text=text, scores={}, card="")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert read(tmp_path / "model").tensors()["a"].tolist() == [1, 1]
