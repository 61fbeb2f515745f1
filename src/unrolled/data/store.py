"""Encoded rows on disk, memory-mapped: written once in a stream, read by row at random without copying."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from unrolled.base.errors import DataError, UnrolledError
from unrolled.data.opening import placed

CHUNK = 4096
"""Rows of a record batch: what is held in memory while writing."""

FORMAT = 1
PLACE = "place"


class Encoder(Protocol):
    """What turns lines into ids: every tokenizer; or with a vocabulary of size 0 into numbers."""

    @property
    def vocabulary_size(self) -> int: ...

    def encode_ids(self, texts: Sequence[Any]) -> list[list[int]]: ...


Name = str | Callable[[int], str]
"""The file that errors name; or what they name for a place."""


class _Chunk(NamedTuple):
    places: Sequence[int]
    columns: Mapping[str, Sequence[Sequence[int]]]


class Store:
    """Rows of symbol ids in named columns, e.g. ``source`` and ``target``, without special symbols.

    A folder with ``rows.arrow`` (Arrow IPC: one list of uint16, int32 for vocabularies above 65,536, float32 for
    columns of numbers, a column) and
    ``rows.json`` (fingerprint, digest). Memory holds where each record batch lies; the system pages ids, lengths and
    places in and out.
    """

    def __init__(self, folder: str | Path) -> None:
        """Open and verify. Raises DataError when the store is missing or damaged."""
        self.folder = Path(folder)
        about = _verified(self.folder)
        self.fingerprint: str = about["fingerprint"]
        self.columns: tuple[str, ...] = tuple(about["columns"])
        try:
            self._file = pa.memory_map(str(self.folder / "rows.arrow"))
            batches = list(_batches(self._file))
            self._views = {name: [_view(batch.column(name)) for batch in batches] for name in self.columns}
            self._places = [batch.column(PLACE).to_numpy() for batch in batches]
        except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as error:
            raise DataError(f"{self.folder}: the encoded rows cannot be read ({error}). Delete the folder.") from None
        self._count = sum(len(places) for places in self._places)

    def __len__(self) -> int:
        return self._count

    def lengths(self, column: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """int32 [stop - start]: symbols of each row from ``start`` on, as far as there are rows."""
        views = self._views[self._known(column)]
        stop = len(self) if stop is None else min(stop, len(self))
        parts = [np.empty(0, dtype=np.int32)]
        for chunk in range(start // CHUNK, -(-stop // CHUNK)):
            first = chunk * CHUNK
            parts.append(np.diff(views[chunk][1][max(start - first, 0) : stop - first + 1]))
        return np.concatenate(parts)

    def places(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """int64 [rows]: the line number of each row. Raises DataError for a row that is not there."""
        return np.array([self._places[row // CHUNK][row % CHUNK] for row in self._there(rows)], dtype=np.int64)

    def take(self, column: str, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """The ids of ``rows``, each a read-only view of the file. Raises DataError for a row that is not there."""
        views = self._views[self._known(column)]
        taken = []
        for row in self._there(rows):
            values, offsets = views[row // CHUNK]
            i = row % CHUNK
            taken.append(values[offsets[i] : offsets[i + 1]])
        return taken

    def _there(self, rows: Sequence[int] | np.ndarray) -> Iterator[int]:
        count = len(self)
        for row in np.asarray(rows, dtype=np.int64).tolist():
            if not 0 <= row < count:
                raise DataError(f"{self.folder}: row {row} was asked for; the store has the rows 0 to {count - 1}.")
            yield row

    def _known(self, column: str) -> str:
        if column not in self._views:
            raise DataError(f"{self.folder}: no column is called '{column}'. Known: {', '.join(self.columns)}.")
        return column

    @staticmethod
    def build(
        folder: str | Path,
        columns: Mapping[str, Iterable[Sequence[int]]],
        *,
        places: Iterable[int] | None = None,
        vocabulary_sizes: Mapping[str, int] | None = None,
        fingerprint: str = "",
    ) -> Store:
        """Write columns of ids, read in step, and open them; ``places`` are line numbers (1, 2, … when not given).

        A store with the same non-empty ``fingerprint`` is reused and the columns are not read. Columns of unequal
        length are a DataError.
        """
        reused = _reused(Path(folder), tuple(columns), fingerprint)
        if reused is not None:
            return reused
        types = _types(columns, vocabulary_sizes or {})
        return _written(Path(folder), _chunks_of_ids(columns, places), types, fingerprint)

    @staticmethod
    def encode(
        folder: str | Path,
        rows: Callable[[], Iterable[tuple[int, Sequence[Any]]]] | Iterable[tuple[int, Sequence[Any]]],
        encoders: Mapping[str, Encoder],
        *,
        fingerprint: str = "",
        name: str | Callable[[int], str] = "line",
    ) -> Store:
        """Encode rows of text ``(place, fields)`` and write them, some thousand at a time; field ``i`` goes through the
        ``i``-th of ``encoders`` into the column of its name. ``rows`` may be a function that starts to read them;
        ``name`` is the file that errors name, or gives what they name for a place.

        A store with the same non-empty ``fingerprint`` is reused and no row is read. DataError for a row that cannot be
        encoded, UnrolledError where the disk refuses; what was in ``folder`` before then stays.
        """
        sizes = {name: encoder.vocabulary_size for name, encoder in encoders.items()}
        reused = _reused(Path(folder), tuple(encoders), fingerprint)
        if reused is not None:
            return reused
        lines = rows() if callable(rows) else rows
        return _written(Path(folder), _encoded(lines, encoders, name), _types(encoders, sizes), fingerprint)


def fingerprint(files: Iterable[str | Path], made_by: Iterable[str]) -> str:
    """A digest of the contents of ``files`` and of ``made_by``, e.g. the tokenizers' fingerprints and the columns.

    Raises DataError for a file that cannot be read.
    """
    digest = hashlib.blake2b(str(FORMAT).encode(), digest_size=16)
    for path in files:
        digest.update(_digest(Path(path)).encode())
    for text in made_by:
        digest.update(hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror}).") from None


def _types(names: Iterable[str], sizes: Mapping[str, int]) -> dict[str, pa.DataType]:
    def kind(size: int) -> pa.DataType:
        return pa.float32() if size == 0 else pa.uint16() if size <= 1 << 16 else pa.int32()

    return {name: kind(sizes.get(name, 1 << 31)) for name in names}


def _chunks_of_ids(columns: Mapping[str, Iterable[Sequence[int]]], places: Iterable[int] | None) -> Iterator[_Chunk]:
    streams = {name: iter(column) for name, column in columns.items()}
    numbers = iter(places) if places is not None else None
    done = 0
    while True:
        part = {name: list(islice(stream, CHUNK)) for name, stream in streams.items()}
        counts = {name: len(rows) for name, rows in part.items()}
        count = max(counts.values(), default=0)
        where = list(range(done + 1, done + count + 1)) if numbers is None else list(islice(numbers, max(count, 1)))
        if len({*counts.values(), len(where)}) > 1:
            ends = ", ".join(f"{name} {done + n}" for name, n in [*counts.items(), ("places", len(where))])
            raise DataError(f"the columns have unequal numbers of rows (at least {ends}). Give each row every column.")
        if not count:
            return
        yield _Chunk(where, part)
        done += count


def _encoded(
    rows: Iterable[tuple[int, Sequence[Any]]], encoders: Mapping[str, Encoder], name: Name
) -> Iterator[_Chunk]:
    stream = iter(rows)
    while part := list(islice(stream, CHUNK)):
        for place, fields in part:
            if len(fields) != len(encoders):
                raise DataError(f"{_where(name, place)}: {len(fields)} fields where {len(encoders)} are expected.")
        places = [place for place, _ in part]
        columns = {
            column: _encoded_column(encoder, [fields[i] for _, fields in part], places, name)
            for i, (column, encoder) in enumerate(encoders.items())
        }
        yield _Chunk(places, columns)


def _where(name: Name, place: int) -> str:
    return f"{name}:{place}" if isinstance(name, str) else name(place)


def _encoded_column(encoder: Encoder, texts: list[Any], places: list[int], name: Name) -> list[list[int]]:
    try:
        return encoder.encode_ids(texts)
    except DataError:
        for place, text in zip(places, texts, strict=True):
            try:
                encoder.encode_ids([text])
            except DataError as error:
                raise DataError(placed(_where(name, place), error)) from None
        raise


def _written(folder: Path, chunks: Iterable[_Chunk], types: Mapping[str, pa.DataType], fingerprint: str) -> Store:
    """Write beside and rename, the description with its digest last: a store cut short is seen as damaged."""
    schema = pa.schema([(PLACE, pa.int64()), *((name, pa.list_(kind)) for name, kind in types.items())])
    beside, described = (folder / f"rows.{kind}.{os.getpid()}.part" for kind in ("arrow", "json"))
    count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        with pa.OSFile(str(beside), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for chunk in chunks:
                writer.write_batch(_batch(chunk, schema))
                count += len(chunk.places)
        about = {"format": FORMAT, "fingerprint": fingerprint, "rows": count, "columns": list(types)}
        text = json.dumps(about | {"digest": _digest(beside)}, indent=1) + "\n"
        beside.replace(folder / "rows.arrow")
        described.write_text(text, encoding="utf-8")
        described.replace(folder / "rows.json")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnrolledError(
            f"{folder}: the encoded rows cannot be written ({reason}). Free space or name another folder."
        ) from None
    finally:
        for part in (beside, described):
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    return Store(folder)


def _sweep(folder: Path) -> None:
    """Remove what a killed process left half-written an hour ago or more."""
    for part in folder.glob("rows.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > 3600:
                part.unlink()


def _batch(chunk: _Chunk, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(np.asarray(chunk.places, dtype=np.int64))]
    for name in schema.names[1:]:
        kind = schema.field(name).type
        try:
            arrays.append(_lists(chunk.columns[name], kind))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise DataError(
                f"column '{name}': ids must be whole numbers that fit {kind.value_type} ({error})."
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _lists(rows: Sequence[Sequence[int]], kind: pa.DataType) -> pa.Array:
    """Through one flat array where there can be one: of lists pyarrow asks pandas, which takes a second to load."""
    if rows and isinstance(rows[0], (list, np.ndarray)):
        listed, dtype = isinstance(rows[0], list), kind.value_type.to_pandas_dtype()
        flat = np.array(list(chain.from_iterable(rows))) if listed else np.concatenate(rows)
        exact = flat.astype(dtype) if listed and flat.dtype == np.int64 else flat
        if (
            exact.dtype == dtype
            and (exact is flat or np.array_equal(exact, flat))
            and len(flat) <= np.iinfo(np.int32).max
        ):
            ends = np.cumsum([0, *map(len, rows)], dtype=np.int32)
            return pa.ListArray.from_arrays(pa.array(ends), pa.array(exact))
    if rows and not isinstance(rows[0], list) and kind.value_type != pa.float32():
        rows = [np.asarray(row).tolist() for row in rows]
    return pa.array(rows, kind)


def _reused(folder: Path, columns: tuple[str, ...], fingerprint: str) -> Store | None:
    """The store already in ``folder`` when it is whole and of the same columns and fingerprint."""
    if not fingerprint:
        return None
    try:
        store = Store(folder)
    except DataError:
        return None
    return store if (store.fingerprint, store.columns) == (fingerprint, columns) else None


def _verified(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{folder}: no encoded rows here ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise DataError(f"{folder}: rows.json is damaged. Delete the folder; it is made again from the data.") from None
    wanted = {"format": int, "fingerprint": str, "rows": int, "columns": list, "digest": str}
    if not isinstance(about, dict) or not all(isinstance(about.get(name), kind) for name, kind in wanted.items()):
        raise DataError(f"{folder}: rows.json is damaged. Delete the folder; it is made again from the data.")
    if about["format"] != FORMAT:
        raise DataError(f"{folder}: rows of format {about['format']}; this version of unrolled reads format {FORMAT}.")
    if _digest(folder / "rows.arrow") != about["digest"]:
        raise DataError(f"{folder}: rows.arrow is damaged. Delete the folder; it is made again from the data.")
    return about


def _batches(file: pa.MemoryMappedFile) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(file)
    for i in range(reader.num_record_batches):
        yield reader.get_batch(i)


def _view(column: pa.ListArray) -> tuple[np.ndarray, np.ndarray]:
    return column.values.to_numpy(), column.offsets.to_numpy()
