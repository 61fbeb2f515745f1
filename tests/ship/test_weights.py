import struct
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from unrolled.base.errors import DataError
from unrolled.ship.weights import read_weights, write_weights


def test_any_safetensors_reader_opens_them(tmp_path: Path) -> None:
    tensors = {
        "w": torch.randn(2, 3),
        "half": torch.ones(5, dtype=torch.bfloat16),
        "none": torch.zeros(0, 7),
        "n": torch.tensor(3),
    }
    write_weights(tmp_path / "w", tensors)
    for found in (load_file(tmp_path / "w"), read_weights(tmp_path / "w", "cpu")):
        assert set(found) == set(tensors)
        for name, tensor in tensors.items():
            assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)


def test_a_tied_weight_is_stored_once_and_comes_back_under_both_names(tmp_path: Path) -> None:
    tied = torch.nn.Parameter(torch.randn(100, 7))
    write_weights(tmp_path / "w", {"embedding": tied, "output": tied, "part": tied[:2], "turned": tied.T})
    assert (tmp_path / "w").stat().st_size < 2 * 100 * 7 * 4 + 1000
    found = read_weights(tmp_path / "w", "cpu")
    assert torch.equal(found["embedding"], tied) and found["embedding"].data_ptr() == found["output"].data_ptr()
    assert torch.equal(found["part"], tied[:2]) and torch.equal(found["turned"], tied.T)
    assert not found["embedding"].requires_grad


def test_it_loads_onto_the_device_asked_for(tmp_path: Path) -> None:
    write_weights(tmp_path / "w", {"a": torch.ones(3)})
    assert read_weights(tmp_path / "w", "meta")["a"].device.type == "meta"


def test_a_shared_name_that_points_nowhere_is_refused(tmp_path: Path) -> None:
    for shared in ('{"b": "missing"}', '["a"]', "not json"):
        save_file({"a": torch.ones(2)}, tmp_path / "w", metadata={"shared": shared})
        with pytest.raises(DataError, match="w: cannot be read as safetensors"):
            read_weights(tmp_path / "w", "cpu")


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda body: struct.pack("<Q", len(body)) + body)))
@settings(max_examples=150, deadline=None)
def test_rubbish_is_a_data_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "rubbish"
    path.write_bytes(content)
    try:
        assert read_weights(path, "cpu") == {}  # "{}" is a sound file without tensors
    except DataError as error:
        assert "rubbish" in str(error)


def test_a_header_whose_length_begins_like_a_pickle_is_none(tmp_path: Path) -> None:
    """Eight bytes of length come first: 896 is 0x0380, written 80 03, as a pickle of protocol 3 begins."""
    for size in range(1, 200):
        write_weights(tmp_path / "w", {f"a{'b' * size}": torch.ones(1), **{f"n{k}": torch.ones(1) for k in range(11)}})
        if (tmp_path / "w").read_bytes()[:2] == b"\x80\x03":
            break
    else:
        pytest.fail("no header of 896 bytes")
    assert len(read_weights(tmp_path / "w", "cpu")) == 12
