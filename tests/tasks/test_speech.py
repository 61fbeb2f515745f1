"""Which columns hold recordings and texts, by what stands in them and what they are called."""

import wave

import pytest

from unrolled.data.readers import open_table
from unrolled.tasks.base import recognise
from unrolled.tasks.speech import Speech, adapted

pytest.importorskip("soundfile", reason="soundfile is not installed: pip install 'unrolled[audio]'")

TABLES = {
    "named.tsv": "path\ttext\na.wav\tone two\nb.wav\tthree\n",
    "turned.tsv": "text\tpath\none two\ta.wav\nthree\tb.wav\n",
    "wide.csv": "id,file,speaker,transcript\n1,a.wav,ann,one two\n2,b.wav,bob,three\n",
    "lines.jsonl": '{"audio": "a.wav", "sentence": "one two"}\n{"audio": "b.wav", "sentence": "three"}\n',
    "bare.tsv": "a.wav\tone two\nb.wav\tthree\n",
}


@pytest.fixture
def folder(tmp_path):
    for name in "ab":
        with wave.open(str(tmp_path / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
            file.writeframes(bytes(range(200)) * 10)
    return tmp_path


@pytest.mark.parametrize("name", TABLES)
def test_sound_comes_first_and_its_text_second(folder, name):
    (folder / name).write_text(TABLES[name])
    table = open_table(folder / name)
    assert recognise({"train": table}, "translate")[0] == "speech"
    found = Speech().adapt(table)
    assert found.columns == ("sound", "text")
    wanted = [(str(folder / "a.wav"), "one two"), (str(folder / "b.wav"), "three")]
    assert [row.fields for row in found.rows()] == wanted
    assert Speech().named(found.columns) == (0, 1)


def test_what_is_not_used_is_said(folder):
    (folder / "wide.csv").write_text(TABLES["wide.csv"])
    said = adapted(open_table(folder / "wide.csv")).guessed[-1]
    assert said == "Recordings are named by 'file', their texts stand in 'transcript'; not used: id, speaker."


def test_a_list_of_paths_is_enough_to_predict(folder):
    (folder / "list.txt").write_text("a.wav\nb.wav\n")
    table = Speech().adapt(open_table(folder / "list.txt"))
    assert table.columns == ("sound",) and [row.fields for row in table.rows()] == [
        (str(folder / "a.wav"),),
        (str(folder / "b.wav"),),
    ]


def test_a_table_of_texts_is_no_speech(tmp_path):
    (tmp_path / "t.tsv").write_text("one\tun\ntwo\tdeux\n")
    assert recognise({"train": open_table(tmp_path / "t.tsv")}, "translate")[0] != "speech"
