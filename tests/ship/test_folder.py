import errno
import os
import pickle
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UnrolledError, UsageError
from unrolled.ship.folder import is_model, read
from unrolled.ship.manifest import Manifest

Save = Callable[..., Path]
FILES = ["settings.yaml", "model.safetensors", "scores.json", "text/source.json", "text/target.json", "README.md"]


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_what_was_saved_comes_back(save: Save, tmp_path: Path) -> None:
    saved = read(save(tmp_path / "new" / "model"))
    assert names(saved.folder) == sorted(FILES)
    assert saved.settings["model"] == {"kind": "seq2seq", "size": 3} and saved.settings["note"] == "naïve: 東京"
    assert saved.settings["train"] == {"learning_rate": 0.001, "betas": [0.9, 0.98]}
    assert set(saved.settings) == {"model", "train", "note"}
    assert saved.scores == {"bleu": 12.5} and saved.version == "0.1.0"
    assert (saved.text / "source.json").read_text() == '{"words": ["a"]}'
    tensors = saved.tensors()
    assert tensors["a.weight"].tolist() == [[0, 1, 2], [3, 4, 5]] and tensors["steps"].item() == 7
    assert [path.name for path in saved.folder.parent.iterdir()] == ["model"]


def test_the_same_model_gives_the_same_bytes(save: Save, tmp_path: Path) -> None:
    first, second = save(tmp_path / "a"), save(tmp_path / "b")
    assert [(first / name).read_bytes() for name in FILES] == [(second / name).read_bytes() for name in FILES]


def test_everybody_who_may_read_the_card_may_read_the_weights(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "a")
    assert len({(folder / name).stat().st_mode & 0o777 for name in FILES}) == 1


def test_a_saved_model_is_replaced_and_other_files_stay(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "state").write_text("kept")
    (folder / "text" / "old.json").write_text("{}")
    save(folder, scores={"bleu": 99.0})
    assert read(folder).scores == {"bleu": 99.0}
    assert names(folder) == sorted([*FILES, "notes.txt", "checkpoint/state"])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_empty_folder_and_one_with_allowed_names_are_filled(save: Save, tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    save(tmp_path / "run", keep=("checkpoint",))
    assert (tmp_path / "run" / "checkpoint").is_dir() and is_model(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    assert is_model(save(tmp_path / "empty"))


def test_a_folder_of_something_else_is_refused_and_left_alone(save: Save, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    with pytest.raises(
        UsageError, match=r"photos: holds something else than a saved model \(cat.jpg\). Nothing was written"
    ):
        save(tmp_path / "photos")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="file: is a file, where a folder for the model is expected"):
        save(tmp_path / "file")
    assert names(tmp_path) == ["file", "photos/cat.jpg"]
    with pytest.raises(UnrolledError, match=r"cannot be saved \(.*\). Free some space or choose another place"):
        save(tmp_path / "file" / "model")


def failing(place: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(place, fail)


@pytest.mark.parametrize("place", ["os.fsync", "unrolled.ship.folder.write_weights", "shutil.copymode", "json.dumps"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_whatever_fails_nothing_is_lost_and_nothing_half_written(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException
) -> None:
    folder = save(tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    with monkeypatch.context() as patch:
        failing(place, error, patch)
        expected = UnrolledError if isinstance(error, OSError) else KeyboardInterrupt
        for target in (folder, tmp_path / "other"):
            with pytest.raises(expected, match="No space left on device" if isinstance(error, OSError) else None):
                save(target, scores={"bleu": 99.0})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert read(folder).scores == {"bleu": 12.5} and (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), KeyboardInterrupt()])
def test_a_rename_that_fails_puts_the_old_model_back(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    folder = save(tmp_path / "model")
    rename = Path.rename

    def once(self: Path, target: Path) -> Path:
        if self.suffix == ".writing":
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", once)
    with pytest.raises((UnrolledError, KeyboardInterrupt)):
        save(folder, scores={"bleu": 99.0})
    assert read(folder).scores == {"bleu": 12.5} and [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("again", ["read", "save"])
def test_an_exchange_that_was_killed_is_finished_by_the_next_one(save: Save, tmp_path: Path, again: str) -> None:
    folder = save(tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    folder.rename(tmp_path / ".model.0badcafe.old")
    if again == "read":  # killed after the first rename
        assert read(folder).scores == {"bleu": 12.5}
    else:  # killed after the second one
        save(tmp_path / "new").rename(folder)
        save(folder, scores={"bleu": 99.0})
        assert read(folder).scores == {"bleu": 99.0}
    assert (folder / "notes.txt").read_text() == "mine" and [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files of this process can have 20 kB at most: what a full disk does to a writer, for real."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_weights_that_do_not_fit_leave_no_half_folder(save: Save, tmp_path: Path) -> None:
    with pytest.raises(UnrolledError, match=r"the model cannot be saved \(.*[Ff]ile too large.*\). Free some space"):
        save(tmp_path / "model", tensors={"big": torch.zeros(9_000)})
    assert list(tmp_path.iterdir()) == []
    assert is_model(save(tmp_path / "model"))


@pytest.mark.parametrize("name", FILES[:-1])
@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "changed", "longer", "a folder"])
def test_a_damaged_file_is_named(save: Save, tmp_path: Path, name: str, damage: str) -> None:
    path = save(tmp_path / "model") / name
    content = path.read_bytes()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "missing":
        middle = len(content) // 2
        changed = bytes([content[middle] ^ 1])
        path.write_bytes(
            {
                "empty": b"",
                "truncated": content[:middle],
                "changed": content[:middle] + changed + content[middle + 1 :],
                "longer": content + b" ",
            }[damage]
        )
    with pytest.raises(DataError, match=rf"{Path(name).name}.*(Copy|copy|Give the folder)"):
        read(tmp_path / "model").tensors()


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_damage_is_found_or_does_no_harm(save: Save, tmp_path: Path, data: st.DataObject) -> None:
    pristine, folder = tmp_path / "pristine", tmp_path / "model"
    if not pristine.exists():
        save(pristine)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine, folder)
    path = folder / data.draw(st.sampled_from(FILES))
    content = bytearray(path.read_bytes())
    where = data.draw(st.integers(0, len(content)))
    kind = data.draw(st.sampled_from(["flip", "cut", "insert", "remove", "replace", "delete"]))
    if kind == "flip" and where < len(content):
        content[where] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del content[where:]
    elif kind == "insert":
        content[where:where] = data.draw(st.binary(min_size=1, max_size=20))
    elif kind == "remove":
        del content[where : where + data.draw(st.integers(1, 40))]
    elif kind == "replace":
        content = bytearray(data.draw(st.binary(max_size=80)))
    path.write_bytes(content)
    if kind == "delete":
        path.unlink()
    try:
        opened = read(folder)
        tensors = opened.tensors()
    except DataError as error:
        assert str(path) in str(error) or str(folder) in str(error)
        return
    # Not found: then it was in the card, in the seal's own comment, or no change at all.
    assert opened.settings == read(pristine).settings and opened.scores == {"bleu": 12.5}
    assert tensors["a.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


class Bomb:
    """Pickled, it makes a folder when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return os.mkdir, (self.place,)


def test_pickles_beside_the_weights_are_never_opened(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "model")
    for name in ("pytorch_model.bin", "model.pt", "text/tokenizer.pkl", "training_args.bin"):
        (folder / name).write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    read(folder).tensors()
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_in_the_place_of_the_weights_is_refused(save: Save, tmp_path: Path, protocol: int) -> None:
    folder = save(tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(pickle.dumps(Bomb(tmp_path / "exploded"), protocol))
    with pytest.raises(DataError, match=r"model.safetensors: is damaged"):
        read(folder).tensors()
    (folder / "settings.yaml").write_bytes(Manifest.of(folder, FILES[1:5]).with_settings({}))
    with pytest.raises(
        DataError, match=r"model.safetensors: (is a pickle, not safetensors|cannot be read as safetensors)"
    ):
        read(folder).tensors()
    torch.save({"a": Bomb(tmp_path / "exploded")}, weights)
    (folder / "settings.yaml").write_bytes(Manifest.of(folder, FILES[1:5]).with_settings({}))
    with pytest.raises(DataError, match=r"is a pickle, not safetensors. A pickle can run any program when opened"):
        read(folder).tensors()
    assert not (tmp_path / "exploded").exists()


def test_what_is_no_model_folder_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: does not exist, where the folder of a saved model is expected"):
        read(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file: is a file, where the folder of a saved model is expected"):
        read(tmp_path / "file")
    with pytest.raises(DataError, match=r"no saved model, settings.yaml is missing"):
        read(tmp_path)


@pytest.mark.parametrize("scores", ["[1, 2]", "not json", "[" * 100_000, "\ud800"])
def test_scores_that_are_no_mapping_are_refused_even_with_a_true_checksum(
    save: Save, tmp_path: Path, scores: str
) -> None:
    folder = save(tmp_path / "model")
    (folder / "scores.json").write_bytes(scores.encode("utf-8", "surrogatepass"))
    (folder / "settings.yaml").write_bytes(Manifest.of(folder, FILES[1:5]).with_settings({}))
    with pytest.raises(DataError, match=r"scores.json: (cannot be read as JSON|holds no mapping)"):
        read(folder)
