import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UnrolledError
from unrolled.data import store as store_module
from unrolled.data.store import Store, fingerprint
from unrolled.text import TOKENIZERS

COLUMNS = {"source": [[4, 5, 6], [], [7]], "target": [[9], [8, 8], [4, 4, 4, 4]]}


def test_rows_come_back(tmp_path):
    store = Store.build(tmp_path / "new" / "store", COLUMNS, places=[2, 3, 7])
    assert len(store) == 3
    assert store.columns == ("source", "target")
    assert [row.tolist() for row in store.take("target", [2, 0, 2])] == [[4, 4, 4, 4], [9], [4, 4, 4, 4]]
    assert [row.tolist() for row in store.take("source", np.array([1, 0]))] == [[], [4, 5, 6]]
    assert store.lengths("source").tolist() == [3, 0, 1]
    assert store.lengths("source").dtype == np.int32
    assert store.lengths("target", 1, 9).tolist() == [2, 4]
    assert store.places([2, 0]).tolist() == [7, 2]
    assert store.places(range(3)).dtype == np.int64
    assert sorted(path.name for path in (tmp_path / "new" / "store").iterdir()) == ["rows.arrow", "rows.json"]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 65535), max_size=5), max_size=12),
    size=st.sampled_from([65536, 65537]),
    chunk=st.integers(1, 5),
)
def test_any_rows_in_any_chunks(rows, size, chunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "CHUNK", chunk)
        store = Store.build(folder, {"source": iter(rows)}, vocabulary_sizes={"source": size})
        assert [row.tolist() for row in store.take("source", range(len(rows)))] == rows
        lengths = [len(row) for row in rows]
        assert store.places(range(len(rows))).tolist() == list(range(1, len(rows) + 1))
        assert store.lengths("source").tolist() == lengths
        for start in range(len(rows)):
            assert (
                store.lengths("source", start, start + size % 5 + 1).tolist() == lengths[start : start + size % 5 + 1]
            )


@pytest.mark.parametrize(("size", "kind"), [(65536, np.uint16), (65537, np.int32)])
def test_small_vocabularies_take_two_bytes(tmp_path, size, kind):
    store = Store.build(tmp_path, {"source": [[size - 1]]}, vocabulary_sizes={"source": size})
    (row,) = store.take("source", [0])
    assert (row.dtype, row.tolist()) == (kind, [size - 1])


def test_rows_are_views_of_the_file_and_read_only(tmp_path):
    (row,) = Store.build(tmp_path, COLUMNS).take("source", [0])
    assert not row.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


def tokenizers():
    source, target = TOKENIZERS.build("character"), TOKENIZERS.build("whitespace")
    source.train(["ab c"])
    target.train(["x yy"])
    return {"source": source, "target": target}


def test_text_is_encoded(tmp_path):
    encoders = tokenizers()
    rows = [(1, ("ab", "yy x")), (3, ("", "x")), (4, ("c", "q"))]
    store = Store.encode(tmp_path, iter(rows), encoders)
    for i, (place, fields) in enumerate(rows):
        assert store.places([i]) == place
        for name, text in zip(store.columns, fields, strict=True):
            assert store.take(name, [i])[0].tolist() == encoders[name].encode(text).ids
    assert store.take("source", [0])[0].dtype == np.uint16


def forbidden():
    raise AssertionError("the rows were read again")
    yield


def test_the_same_fingerprint_reads_nothing(tmp_path):
    encoders = tokenizers()
    first = Store.encode(tmp_path, [(1, ("ab", "x"))], encoders, fingerprint="one")
    again = Store.encode(tmp_path, forbidden(), encoders, fingerprint="one")
    assert [len(first), len(again)] == [1, 1]
    assert len(Store.encode(tmp_path, list, encoders, fingerprint="two")) == 0
    assert Store(tmp_path).fingerprint == "two"
    assert Store.build(tmp_path, {"other": []}, fingerprint="two").columns == ("other",)
    for _ in range(2):
        assert len(Store.build(tmp_path, COLUMNS)) == 3  # no fingerprint: always built
    with pytest.raises(AssertionError, match="read again"):
        Store.build(tmp_path, {"source": forbidden()})


@pytest.mark.parametrize("name", ["rows.arrow", "rows.json"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_damage_is_seen_and_rebuilt(name, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    Store.build(folder, COLUMNS, fingerprint="f")
    whole = (folder / name).read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 2), label="cut")
    (folder / name).write_bytes(data.draw(st.sampled_from([whole[:cut], whole[:cut] + b"\xff" + whole[cut + 1 :]])))
    if (folder / name).read_bytes() != whole:
        with pytest.raises(DataError, match=r"damaged|format"):
            Store(folder)
    assert Store.build(folder, COLUMNS, fingerprint="f").take("target", [1])[0].tolist() == [8, 8]


def test_missing_is_seen(tmp_path):
    with pytest.raises(DataError, match="no encoded rows here"):
        Store(tmp_path)
    Store.build(tmp_path, COLUMNS)
    (tmp_path / "rows.arrow").unlink()
    with pytest.raises(DataError, match=r"rows\.arrow: the file cannot be read"):
        Store(tmp_path)


def test_mistakes_are_named(tmp_path):
    store = Store.build(tmp_path, COLUMNS)
    with pytest.raises(DataError, match=r"no column is called 'sorce'\. Known: source, target\."):
        store.take("sorce", [0])
    for row in (3, -1):
        with pytest.raises(DataError, match=f"row {row} was asked for; the store has the rows 0 to 2"):
            store.take("source", [row])
    with pytest.raises(
        DataError, match=r"unequal numbers of rows \(at least source 2, target 3, places 3\)\. Give each row"
    ):
        Store.build(tmp_path, {**COLUMNS, "source": [[1], [2]]})
    with pytest.raises(DataError, match="unequal numbers of rows"):
        Store.build(tmp_path, COLUMNS, places=[1, 2, 3, 4][:2])
    for ids in ([70_000], [-1], ["a"]):
        with pytest.raises(DataError, match="column 'source': ids must be whole numbers that fit uint16"):
            Store.build(tmp_path, {"source": [ids]}, vocabulary_sizes={"source": 100})
    with pytest.raises(DataError, match="line:9: 1 fields where 2 are expected"):
        Store.encode(tmp_path, [(9, ("a",))], tokenizers())
    with pytest.raises(DataError, match=r"pairs\.tsv:8: the text 'b.*' holds a lone surrogate"):
        Store.encode(tmp_path, [(7, ("a", "x")), (8, ("b\ud800", "x"))], tokenizers(), name="pairs.tsv")
    assert len(Store(tmp_path)) == 3, "the store that was there is still there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.arrow", "rows.json"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnrolledError, match=r"the encoded rows cannot be written .* Free space or name another folder"):
        Store.build(tmp_path / "file", COLUMNS)


FULL = """
import resource, sys
from unrolled.base.errors import UnrolledError
from unrolled.data.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    Store.build(sys.argv[1], {"source": ([5] * 100 for _ in range(10_000))}, fingerprint="f")
except UnrolledError as error:
    print(error)
"""


def test_a_full_disk(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert "the encoded rows cannot be written (" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept(tmp_path):
    old, fresh = tmp_path / "rows.arrow.1.part", tmp_path / "rows.arrow.2.part"
    old.write_text("half")
    fresh.write_text("half")
    os.utime(old, (time.time() - 7200,) * 2)
    Store.build(tmp_path, COLUMNS)
    assert not old.exists() and fresh.exists()


def test_fingerprints_follow_contents(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\n")
    first = fingerprint([path], ["tokenizer"])
    assert fingerprint([str(path)], iter(["tokenizer"])) == first
    assert (
        len({first, fingerprint([path], ["other"]), fingerprint([path, path], ["tokenizer"]), fingerprint([path], [])})
        == 4
    )
    assert fingerprint([], ["ab", "c"]) != fingerprint([], ["a", "bc"])
    path.write_text("a\tc\n")
    assert fingerprint([path], ["tokenizer"]) != first
    with pytest.raises(DataError, match="the file cannot be read"):
        fingerprint([tmp_path / "no"], [])


GROWTH = """
import resource, sys
from unrolled.data.store import Store
count = int(sys.argv[2])
class Encoder:
    vocabulary_size = 9000
    def encode_ids(self, texts):
        return [[i % 9000 for i in range(len(text))] for text in texts]
rows = ((i, ("x" * (i % 60), "y" * 30)) for i in range(count))
Store.encode(sys.argv[1], iter([(1, ("a", "b"))] * 5000), {"source": Encoder(), "target": Encoder()})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store = Store.encode(sys.argv[1], rows, {"source": Encoder(), "target": Encoder()})
assert len(store) == count
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted in kilobytes on Linux only")
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    grown = {}
    for count in (20_000, 200_000):
        done = subprocess.run(
            [sys.executable, "-c", GROWTH, str(tmp_path), str(count)], capture_output=True, text=True, check=True
        )
        grown[count] = int(done.stdout)
    assert (tmp_path / "rows.arrow").stat().st_size > 24_000_000
    lengths_and_places = 180_000 * (4 + 4 + 8)
    assert grown[200_000] - grown[20_000] < 3 * lengths_and_places + 4_000_000


def test_random_rows_are_those_that_were_asked_for(tmp_path):
    store = Store.build(tmp_path, {"source": ([7] * (i % 20) for i in range(50_000))}, vocabulary_sizes={"source": 9})
    rows = np.random.default_rng(0).integers(0, 50_000, 100_000)
    for batch in rows.reshape(-1, 100):
        assert [len(row) for row in store.take("source", batch)] == (batch % 20).tolist()
