"""Data sets that the `datasets` library holds: saved folders, and names on the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unrolled.base.errors import DataError
from unrolled.data.columnar import BATCH, arrow_table
from unrolled.data.files import named_format
from unrolled.data.folders import SPLITS, split_of
from unrolled.data.table import Columns, Table

_NAME = re.compile(r"(hf:)?(?P<name>[\w.-]+(/[\w.-]+)?)(:(?P<config>[\w.+-]+))?")


def is_hub_name(text: str) -> bool:
    """Whether this is a data set's name, not a path: ``owner/name``, ``hf:name``, each with ``:config`` behind it.

    What exists here is a path, and so is what ends like a data file or lies in a folder that exists.
    """
    match = _NAME.fullmatch(text)
    if not match or (not text.startswith("hf:") and "/" not in text) or text.startswith((".", "/")):
        return False
    path = Path(text)
    here = path.exists() or path.parent.is_dir() or named_format(path) is not None or path.suffix in (".gz", ".txt")
    return text.startswith("hf:") or not here


def is_saved_folder(folder: Path) -> bool:
    """Whether `datasets` wrote this folder with ``save_to_disk``."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


def open_saved(folder: Path, columns: Columns = None) -> dict[str, Table]:
    """The splits of a folder written by ``save_to_disk``; a single data set counts as train."""
    import datasets

    return _tables(folder, _load(str(folder), lambda: datasets.load_from_disk(str(folder))), columns)


def open_hub(text: str, columns: Columns = None) -> dict[str, Table]:
    """The splits of a data set by its name on the hub; DataError where it cannot be reached or has no such name."""
    import datasets

    match = _NAME.fullmatch(text)
    if not match:
        raise DataError(f"{text}: this is not the name of a data set. Write owner/name or owner/name:config.")
    name, config = match["name"], match["config"]
    return _tables(Path(text), _load(text, lambda: datasets.load_dataset(name, config)), columns)


def open_repository(folder: Path, columns: Columns = None) -> dict[str, Table]:
    """The splits of a local folder laid out like a data set on the hub (``data/train-00000-of-00002.parquet``)."""
    import datasets

    return _tables(folder, _load(str(folder), lambda: datasets.load_dataset(str(folder))), columns)


def is_repository(folder: Path) -> bool:
    """Whether a folder holds numbered pieces or a ``data`` folder, as data sets on the hub do."""
    shards = any(folder.glob("*-[0-9]*-of-[0-9]*.*"))
    return shards or any(named_format(path) for path in (folder / "data").glob("*") if path.is_file())


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and no retry messages of the library in between ours."""
    import logging

    import datasets

    hub = logging.getLogger("huggingface_hub")
    level, bars = hub.level, datasets.are_progress_bars_disabled()
    hub.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        hub.setLevel(level)
        if not bars:
            datasets.enable_progress_bars()


def _load(name: str, load: Callable[[], Any]) -> Any:
    try:
        with _quiet():
            return load()
    except Exception as error:  # the library raises errors of many kinds; all mean that the data is not there
        cause = " ".join(str(error).split())[:300].rstrip(". ") or type(error).__name__
        if isinstance(error, ConnectionError | TimeoutError):
            raise DataError(
                f"{name}: the Hugging Face hub cannot be reached ({cause}). Is there a network? "
                "If you meant a file or folder, there is none of this name here."
            ) from None
        raise DataError(f"{name}: the data set cannot be loaded ({cause}).") from None


def _tables(path: Path, loaded: Any, columns: Columns) -> dict[str, Table]:
    """A Table for each split that is train, valid or test; a data set without splits is train."""
    splits = dict(loaded) if hasattr(loaded, "keys") else {"train": loaded}
    named = {split_of(name): dataset for name, dataset in splits.items()}
    if not named.keys() & set(SPLITS):
        raise DataError(f"{path}: none of the splits {', '.join(splits)} is called train, valid or test.")
    return {split: _table(path, split, named[split], columns) for split in SPLITS if split in named}


def _table(path: Path, split: str, dataset: Any, columns: Columns) -> Table:
    if len(dataset) == 0:
        raise DataError(f"{path}: the {split} split has no rows.")

    def batches(names: list[str]) -> Iterator[Any]:
        yield from dataset.select_columns(names).with_format("arrow").iter(batch_size=BATCH)

    place = path / split if path.is_dir() else Path(f"{path}[{split}]")
    mark = str(getattr(dataset, "_fingerprint", ""))
    return arrow_table(place, dataset.features.arrow_schema, batches, columns, "datasets", (), mark)
