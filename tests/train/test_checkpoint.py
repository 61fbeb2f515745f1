import errno
import json
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from unrolled.base.errors import DataError, UnrolledError
from unrolled.train import checkpoint

TENSORS = {
    "weights": {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7)},
    "random": {"r": torch.ones(5).byte()},
}
STATE = {"position": {"step": 3}, "record": {"train": {"seed": 1}}}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return checkpoint.write(tmp_path_factory.mktemp("written"), "step-00000003", TENSORS, STATE)


def test_what_is_written_is_read(written):
    state, tensors = checkpoint.read(written)
    assert state == {"format": 1, **STATE}
    assert tensors.keys() == TENSORS.keys()
    for file, content in TENSORS.items():
        assert {name: tensor.tolist() for name, tensor in tensors[file].items()} == {
            name: tensor.tolist() for name, tensor in content.items()
        }
    assert sorted(path.name for path in written.parent.iterdir()) == ["step-00000003"]


@given(st.data())
def test_any_damage_to_any_file_is_a_data_error_that_names_it(written, data):
    file = data.draw(st.sampled_from(sorted(written.iterdir())))
    whole = file.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    damage = data.draw(st.sampled_from(["cut", "change", "grow", "remove"]))
    other = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
    try:
        file.unlink()
        if damage == "cut":
            file.write_bytes(whole[:place])
        elif damage == "change":
            file.write_bytes(whole[:place] + other + whole[place + 1 :])
        elif damage == "grow":
            file.write_bytes(whole + other)
        with pytest.raises(DataError, match=r"step-00000003.*damaged"):
            checkpoint.read(written)
    finally:
        file.write_bytes(whole)
    checkpoint.read(written)


def test_a_later_format_is_refused_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 9)
    path = checkpoint.write(tmp_path, "step-1", TENSORS, STATE)
    monkeypatch.undo()
    with pytest.raises(DataError, match="checkpoint format 9 was given; this version reads 1"):
        checkpoint.read(path)


def test_a_damaged_last_one_offers_the_one_before(tmp_path):
    for step in (1, 2, 3):
        checkpoint.write(tmp_path, f"step-{step:08d}", TENSORS, STATE)
    assert checkpoint.read_last(tmp_path)[0].name == "step-00000003"
    (tmp_path / "step-00000003" / "weights.safetensors").write_bytes(b"")
    (tmp_path / "step-00000002" / "state.json").unlink()
    with pytest.raises(DataError) as caught:
        checkpoint.read_last(tmp_path)
    third = tmp_path / "step-00000003"
    assert str(caught.value) == (
        f"{third / 'weights.safetensors'}: damaged (its sum is not the one that was written). "
        f"The one before it is whole: remove {third} and resume from step-00000001."
    )
    (tmp_path / "step-00000001" / "random.safetensors").write_bytes(b"x")
    with pytest.raises(DataError, match="no earlier one that is whole: train anew in another folder"):
        checkpoint.read_last(tmp_path)


def test_there_may_be_none(tmp_path):
    assert checkpoint.read_last(tmp_path) is None
    assert checkpoint.read_last(tmp_path / "nowhere") is None
    assert checkpoint.best(tmp_path) is None


def test_the_two_newest_and_the_best_are_kept(tmp_path):
    for step in (1, 2, 3):
        checkpoint.write(tmp_path, f"step-{step:08d}", TENSORS, STATE)
        checkpoint.write(tmp_path, f"best-{step:08d}", TENSORS, STATE)
    (tmp_path / "step-00000009.part").mkdir()
    (tmp_path / "mine").mkdir()
    checkpoint.prune(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "best-00000002",
        "mine",
        "step-00000002",
        "step-00000003",
    ]
    checkpoint.forget_after(tmp_path, 1)
    assert checkpoint.best(tmp_path) is None


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    checkpoint.write(tmp_path, "step-00000001", TENSORS, STATE)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        UnrolledError, match=r"step-00000002: the checkpoint cannot be written \(.*No space left.*Make room"
    ):
        checkpoint.write(tmp_path, "step-00000002", TENSORS, STATE)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    checkpoint.read(tmp_path / "step-00000001")


def test_a_folder_that_cannot_be_written_is_found_before_training(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnrolledError, match="file: cannot be written"):
        checkpoint.prepare(tmp_path / "file")
    with pytest.raises(UnrolledError, match=r"file.below: cannot be written \(Not a directory\). Give another --out."):
        checkpoint.prepare(tmp_path / "file" / "below")
    checkpoint.prepare(tmp_path / "new" / "deep")
    assert list((tmp_path / "new" / "deep").iterdir()) == []


def test_weights_of_another_model_are_named():
    weights = checkpoint.weights_of(nn.Linear(3, 2))
    with pytest.raises(DataError, match=r"^run: 'bias' is in the checkpoint, but not in the model"):
        checkpoint.load_weights(nn.Linear(3, 2, bias=False), weights, "run")
    with pytest.raises(
        DataError, match=r"^run: 'weight' has the shape \(2, 3\) in the checkpoint and \(2, 5\) in the model"
    ):
        checkpoint.load_weights(nn.Linear(5, 2), weights, "run")


def test_nothing_is_pickled(written):
    for file in written.iterdir():
        if file.suffix == ".json":
            json.loads(file.read_text())
        else:
            size = int.from_bytes(file.read_bytes()[:8], "little")
            json.loads(file.read_bytes()[8 : 8 + size])
