"""Features: values and their brackets as symbols, and sources of a text with features."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.base.protocol import SPECIALS, UNKNOWN
from unrolled.text import TOKENIZERS, TextPair
from unrolled.text.featured import Featured, joined
from unrolled.text.features import values_of
from unrolled.text.texts import TextSettings

CASES = {
    "V;PST": ["V", "PST"],
    "V;IMP;NOM(2,SG)": ["V", "IMP", "NOM", "NOM(2", "NOM(SG"],
    "N;ABL(PL;PSS(2,PL))": ["N", "ABL", "ABL(PL", "ABL(PSS", "PSS(2", "PSS(PL"],
    "Case=Nom|Number=Sing": ["Case=Nom", "Number=Sing"],
    " de  formal ": ["de", "formal"],
    "V.PTCP;PRS": ["V.PTCP", "PRS"],
    "NOM(2": ["NOM", "NOM(2"],
    "A)B": ["A", "B"],
    "A(B)(C);D": ["A", "A(B", "C", "D"],
    "": [],
    ";;": [],
}


@pytest.mark.parametrize(("cell", "symbols"), CASES.items())
def test_a_value_in_brackets_is_another_symbol(cell: str, symbols: list[str]) -> None:
    found = values_of(cell)
    assert [one.symbol for one in found] == symbols
    assert [cell[one.start : one.end] for one in found] == [one.name for one in found]


NAMES = st.sampled_from(["V", "N", "NOM", "2", "SG", "PL", "é"])
TREES = st.recursive(NAMES, lambda inner: st.tuples(NAMES, st.lists(inner, min_size=1, max_size=3)), max_leaves=8)


def written(tree: object, between: str) -> str:
    if isinstance(tree, str):
        return tree
    name, inner = tree
    return f"{name}({between.join(written(one, between) for one in inner)})"


@given(trees=st.lists(TREES, min_size=1, max_size=4), between=st.sampled_from([";", ",", " ", "|", "; "]))
def test_what_is_decoded_reads_as_the_same_symbols(trees: list[object], between: str) -> None:
    cell = between.join(written(one, between) for one in trees)
    tokenizer = TOKENIZERS.build("features")
    tokenizer.train([cell])
    read = tokenizer.encode(cell)
    assert UNKNOWN not in read.ids
    assert read.ids == tokenizer.encode_ids([cell])[0]
    assert tokenizer.encode(tokenizer.decode(read.ids)).ids == read.ids


def test_rare_values_and_those_of_other_cells_are_unknown() -> None:
    tokenizer = TOKENIZERS.build({"kind": "features", "min_count": 2})
    tokenizer.train(["V;PST", "V;PRS", "N;PST"])
    assert tokenizer.vocabulary[len(SPECIALS) :] == ("PST", "V")
    assert tokenizer.encode("V;NEW;PRS").tokens == ["V", "<unk>", "<unk>"]


ROWS = [("walk", "V;PST", "en", "walked"), ("tak", "N;PL", "pl", "taks"), ("wat", "V;NOM(3,SG)", "en", "wats")]


def texts(joint: bool = False, columns: int = 2) -> TextPair:
    rows = [(*row[: columns + 1], row[-1]) for row in ROWS]
    return TextPair.learn({"source": "character", "target": "character", "joint": joint}, lambda: rows)


def test_features_come_first_and_each_column_has_its_own_symbols() -> None:
    source = texts().source
    assert isinstance(source, Featured)
    line = joined(ROWS[0][:3])
    read = source.encode(line)
    assert read.tokens == ["V", "PST", "en", "w", "a", "l", "k"]
    assert [line[start:end] for start, end in read.spans] == read.tokens
    assert [source.vocabulary[one] for one in read.ids] == read.tokens
    assert max(read.ids[3:]) < source.border <= min(read.ids[:3])
    assert source.vocabulary_size == len(source.vocabulary) == source.border + source.features_size
    assert source.encode_ids([line]) == [read.ids]
    assert source.decode(read.ids) == line
    assert [line[start:end] for start, end in source.words(line)] == ["V", "PST", "en", "w", "a", "l", "k"]


def test_unseen_features_are_unknown_in_their_own_column() -> None:
    source = texts().source
    line = "walk\tV;NEW\tfr"
    read = source.encode(line)
    assert source.unseen(line) == ["NEW", "fr"]
    assert source.unseen("walk\tV\ten") == []
    assert UNKNOWN not in read.ids
    unknown = source.unknown_ids(read.ids)
    assert [one == other for one, other in zip(read.ids, unknown, strict=True)] == [False, True, True] + [False] * 4
    assert len(set(unknown)) == 3 and unknown[-1] == UNKNOWN


@pytest.mark.parametrize("line", ["", "\t\t", "\tV;PST\ten"])
def test_a_source_without_text_has_no_symbols(line: str) -> None:
    source = texts().source
    assert source.encode(line).ids == source.encode_ids([line])[0] == []


def test_a_source_without_its_columns_is_refused() -> None:
    with pytest.raises(DataError, match=r"1 column where 3 are expected, the text and 2 of features, a tab .*'walk'"):
        texts().source.encode("walk")


def test_an_empty_column_of_features_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"column 2 of features is empty in every row: .* Leave it out of task.features"
    ):
        TextPair.learn(vars(TextSettings()), lambda: [("a", "V", " ", "b"), ("c", "N", "", "d")])


@pytest.mark.parametrize("joint", [False, True])
def test_saved_is_loaded_and_files_of_another_text_go(joint: bool, tmp_path) -> None:
    text = texts(joint)
    text.save(tmp_path)
    again = TextPair.load(tmp_path)
    assert again.joint is joint
    assert again.fingerprint() == text.fingerprint()
    assert again.source.encode("wat\tN;PL\tpl") == text.source.encode("wat\tN;PL\tpl")
    assert list(again.about()) == ["source", "target", "features", "features.2"]
    texts(joint, columns=1).save(tmp_path)
    assert len(TextPair.load(tmp_path).features) == 1
    texts(joint, columns=0).save(tmp_path)
    assert not isinstance(TextPair.load(tmp_path).source, Featured)
    assert not list(tmp_path.glob("features*"))
