from collections.abc import Callable
from pathlib import Path

import pytest

from unrolled.base.errors import DataError, UsageError
from unrolled.ship import manifest as module
from unrolled.ship.folder import read
from unrolled.ship.manifest import FORMAT, Manifest

Save = Callable[..., Path]


def rewrite(folder: Path, old: str, new: str, *, sealed: bool = False) -> None:
    """Change settings.yaml by hand, with its first line deleted as it says, or left."""
    path = folder / "settings.yaml"
    seal, _, body = path.read_text(encoding="utf-8").partition("\n")
    assert old in body
    path.write_text((f"{seal}\n" if sealed else "") + body.replace(old, new, 1), encoding="utf-8")


def test_the_file_reads_as_what_it_is(save: Save, tmp_path: Path) -> None:
    lines = (save(tmp_path / "m") / "settings.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# sha256 of the lines below (delete this line if you change them by hand): ")
    assert lines[1:4] == [f"format: {FORMAT}", "unrolled: 0.1.0", "model:"] and "note: 'naïve: 東京'" in lines


def test_a_change_by_hand_is_found_and_can_be_meant(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "m")
    rewrite(folder, "size: 3", "size: 4", sealed=True)
    with pytest.raises(
        DataError, match=r"was changed since it was saved. If you did so on purpose, delete its first line"
    ):
        read(folder)
    save(folder)
    rewrite(folder, "size: 3", "size: 4")
    assert read(folder).settings["model"]["size"] == 4


def test_a_newer_format_names_both_versions(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "m")
    rewrite(folder, f"format: {FORMAT}\nunrolled: 0.1.0", f"format: {FORMAT + 1}\nunrolled: 9.2.0")
    with pytest.raises(
        DataError,
        match=rf"saved in format {FORMAT + 1} by unrolled 9.2.0; this is unrolled 0.1.0, which reads format {FORMAT}",
    ):
        read(folder)


def test_an_older_format_goes_through_every_migration(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(tmp_path / "m", settings={"width": 5})
    rewrite(folder, f"format: {FORMAT}", "format: 1")
    monkeypatch.setattr(module, "FORMAT", 3)
    monkeypatch.setitem(module.MIGRATIONS, 1, lambda tree: {"size": tree["width"]})
    monkeypatch.setitem(module.MIGRATIONS, 2, lambda tree: {"model": {"size": tree["size"] + 1}})
    assert read(folder).settings == {"model": {"size": 6}}


def test_a_model_that_there_is_no_longer_is_named(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "m", settings={"model": {"kind": "signal_classifier"}})
    rewrite(folder, f"format: {FORMAT}", "format: 1")
    with pytest.raises(DataError, match=r"m: a model 'signal_classifier' of an earlier version.*numbers_to_label now"):
        read(folder)


def test_every_older_format_has_its_migration() -> None:
    assert set(module.MIGRATIONS) == set(range(1, FORMAT))


@pytest.mark.parametrize(
    "old, new, message",
    [
        (f"format: {FORMAT}", "format: true", "'format' is True where a whole number is expected"),
        (f"format: {FORMAT}", "format: 0", "'format' is 0"),
        (f"format: {FORMAT}", "format: one", "'format' is 'one'"),
        (f"format: {FORMAT}", "formal: 1", "does not start with 'format:'"),
        ("files:", "flies:", "'files' is missing"),
        ("files:", "files: [", "not YAML"),
        (
            "  model.safetensors:",
            "  ../model.safetensors:",
            "'../model.safetensors' under 'files' is no file of this folder",
        ),
        ("  model.safetensors:", "  /etc/passwd:", "'/etc/passwd' under 'files' is no file of this folder"),
        ("  model.safetensors:", "  1:", "1 under 'files' is no file of this folder"),
        ("  model.safetensors:", '  "a\\0b":', "under 'files' is no file of this folder"),
        ("  scores.json:", "  other.json:", "other.json: is missing from the saved model"),
        ("bytes:", "byte:", "the entry of 'model.safetensors' under 'files' is damaged"),
        ("sha256: ", "sha256: x", "the entry of 'model.safetensors' under 'files' is damaged"),
    ],
)
def test_a_manifest_that_was_tampered_with(save: Save, tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = save(tmp_path / "m")
    rewrite(folder, old, new)
    with pytest.raises(DataError, match=message):
        read(folder)


def test_a_manifest_without_weights_is_refused(save: Save, tmp_path: Path) -> None:
    folder = save(tmp_path / "m")
    (folder / "settings.yaml").write_bytes(Manifest.of(folder, ["scores.json"]).with_settings({}))
    with pytest.raises(DataError, match=r"lists no model.safetensors"):
        read(folder)


@pytest.mark.parametrize("name", ["format", "unrolled", "files"])
def test_names_of_the_folder_are_no_settings(name: str) -> None:
    with pytest.raises(UsageError, match=f"the name '{name}' is taken by the model folder"):
        Manifest({}).with_settings({name: 1})


def test_settings_that_are_no_plain_tree_are_refused() -> None:
    with pytest.raises(UsageError, match="settings: cannot be written as YAML"):
        Manifest({}).with_settings({"model": object()})
