"""Captions end to end: shapes named, where the model looked, what is refused and where, and the doctor."""

import json
import shutil

import numpy as np
import pytest
import torch
import typer
from PIL import Image, ImageDraw

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.base.protocol import END
from unrolled.cli.check import check
from unrolled.tasks.captions import Captions, paired
from unrolled.workshop.sources import Sources, part_of

COLOURS = {"red": (220, 40, 40), "blue": (40, 60, 220), "green": (40, 180, 60)}
SETTINGS = {
    "text": {"target": "whitespace"},
    "model": {
        "front": {"grid": {"sizes": [16, 32]}},
        "decoder": {"cell": {"hidden_size": 48}},
        "embedding_size": 16,
        "dropout": 0.0,
    },
    "train": {
        "epochs": 14,
        "learning_rate": 0.01,
        "batch_sentences": 16,
        "stop_on": "loss",
        "precision": "float32",
        "seed": 1,
    },
    "search": {"beam": 1, "kind": "argmax"},
}


def squares(draw):
    """Two squares side by side, their colours from left to right, and where they are."""
    width = int(draw.integers(20, 29))
    image, boxes = Image.new("RGB", (width, 12), (255, 255, 255)), []
    names = draw.choice(list(COLOURS), size=2).tolist()
    for name, left in zip(names, (1, width - 9), strict=True):
        top = int(draw.integers(0, 4))
        ImageDraw.Draw(image).rectangle((left, top, left + 7, top + 7), fill=COLOURS[name])
        boxes.append(f"{left},{top},{left + 8},{top + 8}")
    return image, " ".join(names), " ".join(boxes)


def write(folder, count, seed):
    (folder / "img").mkdir(parents=True)
    draw = np.random.default_rng(seed)
    rows, boxes = ["file_name\tcaption\n"], ["image\tboxes\n"]
    for number in range(count):
        image, caption, where = squares(draw)
        image.save(folder / "img" / f"{number}.png")
        rows.append(f"img/{number}.png\t{caption}\n")
        boxes.append(f"img/{number}.png\t{where}\n")
    (folder / "captions.tsv").write_text("".join(rows))
    (folder / "boxes.tsv").write_text("".join(boxes))
    return folder / "captions.tsv"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("squares")
    write(folder / "train", 160, 1)
    write(folder / "test", 40, 2)
    return folder


@pytest.fixture(scope="module")
def model(data):
    return unrolled.train(data / "train/captions.tsv", out=data / "model", settings=SETTINGS, quiet=True)


def test_squares_of_images_of_any_width_are_named(model, data):
    part = part_of(Sources(data=str(data / "test/captions.tsv")), model.task)
    sources, captions = model.task.pairs(part)
    found = {one.name: one.value for one in model.evaluate(sources, captions)}
    assert found["exact_match"] >= 0.9
    assert set(found) == {"bleu", "chrf", "ter", "exact_match", "cer"}


def test_a_path_and_its_pixels_give_the_same_whatever_stands_beside(model, data):
    paths = [str(data / f"test/img/{number}.png") for number in range(6)]
    together = model.predict(paths)
    assert model.predict([np.asarray(Image.open(path)) for path in paths]) == together
    assert [model.predict([path])[0] for path in reversed(paths)] == together[::-1]
    assert model.predict([np.asarray(Image.open(paths[0])) / 255]) == together[:1]


def test_the_model_looks_where_the_squares_are(model, data, run, tmp_path):
    words = ["evaluate", data / "model", data / "test/captions.tsv", "--boxes", data / "test/boxes.tsv", "--json"]
    scores = {one["name"]: one for one in json.loads(run(*words).out)["scores"]}
    assert scores["attention_inside"]["value"] >= 0.8  # 0.22 by chance
    assert scores["attention_inside"]["protocol"].startswith("80 words: the attention's centre")
    (tmp_path / "b.tsv").write_text("image\tboxes\n/x.png\t1,2,3,4\n")
    result = run("evaluate", data / "model", data / "test/captions.tsv", "--boxes", tmp_path / "b.tsv")
    assert result.code == 3 and "b.tsv: there is no row for" in result.err


def test_an_explanation_is_drawn_and_erasing_says_how_far_to_trust_it(model, data, tmp_path):
    path = str(data / "test/img/0.png")
    one = model.explain(path)
    assert one.target_text == model.predict([path])[0] and one.source_text == path
    np.testing.assert_allclose(one.weights.sum(axis=(1, 2)), 1, rtol=1e-4)
    np.testing.assert_allclose(one.end.sum(), 1, rtol=1e-4)
    assert "region" in one.faithfulness["top_agreement"].sentence
    given = model.explain(path, "red blue", trusted=False)
    assert list(given.words) == ["red", "blue"] and given.faithfulness is None
    for ending in ("svg", "png", "html", "json"):
        assert one.to(tmp_path / f"x.{ending}").stat().st_size > 500
    assert json.loads((tmp_path / "x.json").read_text())["words"][0]["word"] == one.words[0]


def test_a_caption_without_words_is_shown_as_the_image(model, data, run, tmp_path):
    silent = unrolled.load(data / "model")
    with torch.no_grad():
        silent.network.output.bias[END] += 100
    silent.save(tmp_path / "silent")
    result = run("explain", tmp_path / "silent", data / "test/img/0.png", "--to", tmp_path / "picture.png")
    assert result.code == 0 and (tmp_path / "picture.png").stat().st_size > 500
    assert "the model writes nothing here" in result.err


def test_forced_words_have_the_probabilities_of_a_search(model, data):
    path = str(data / "test/img/3.png")
    best = model.translations([path])[0][0]
    (forced,) = model.score([path], [best.text])
    np.testing.assert_allclose(forced.log_probs, best.hypothesis.token_log_probs, atol=1e-4)
    assert model.embed([path, path]).shape == (2, 32)


def test_promises_hold_and_a_saved_model_is_the_same(model, data, tmp_path):
    assert all(one.holds for one in model.promises(None, 8))
    assert all(one.holds for one in model.promises(str(data / "test/captions.tsv"), 8))
    loaded = unrolled.Captioner.load(model.save(tmp_path / "again"))
    paths = [str(data / f"test/img/{number}.png") for number in range(3)]
    assert loaded.predict(paths) == model.predict(paths)


def test_predict_takes_an_image_a_folder_a_table_and_a_list(model, data, run, tmp_path, monkeypatch):
    wanted = model.predict([str(data / f"test/img/{number}.png") for number in (0, 1)])
    folder = tmp_path / "two"
    folder.mkdir()
    for number in (0, 1):
        shutil.copy(data / f"test/img/{number}.png", folder)
    (folder / "list.txt").write_text("0.png\n1.png\n")
    assert run("predict", data / "model", folder / "0.png").out.splitlines() == wanted[:1]
    assert run("predict", data / "model", folder).out.splitlines() == wanted
    assert run("predict", data / "model", folder / "list.txt").out.splitlines() == wanted
    lines = run("predict", data / "model", data / "test/captions.tsv").out.splitlines()
    assert len(lines) == 40 and lines[:2] == wanted
    shown = json.loads(run("predict", data / "model", folder / "0.png", "--attention", "--json").out)
    assert [one["word"] for one in shown["outputs"][0]["alignment"]["words"]] == wanted[0].split()


def test_captions_of_one_image_are_references_of_each_other(model, data, tmp_path):
    image = str(data / "test/img/0.png")
    (own,) = model.predict([image])
    scores = {one.name: one for one in model.evaluate([image, image], ["something else", own])}
    assert scores["exact_match"].value == 1.0 and "2 rows of 1 sources" in scores["exact_match"].protocol
    array = np.asarray(Image.open(image))
    assert model.evaluate([array, array], ["something else", own])[3].value == 0.5  # arrays are not compared


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda f: (f / "img/3.png").unlink(), r"captions.tsv:5: .*3.png: there is no such image"),
        (lambda f: (f / "img/3.png").write_bytes(b"\x89PNG\r\n"), r"captions.tsv:5: .*3.png: this is no image that is"),
        (
            lambda f: Image.new("L", (1, 1)).save(f / "img/3.png"),
            r"captions.tsv:5: .*3.png: 1 × 1 pixels; sides from 2",
        ),
        (
            lambda f: Image.new("1", (9000, 9000)).save(f / "img/3.png"),
            r"captions.tsv:5: .*3.png: 9,000 × 9,000 = 81,000,000 pixels; at most 50,000,000 are unpacked",
        ),
        (
            lambda f: (f / "captions.tsv").write_text("image\tcaption\nimg/0.png\tred\nimg/1.png\t \n"),
            r"captions.tsv:3: the caption of .* is empty. Write one, or leave the row out",
        ),
        (
            lambda f: (f / "captions.tsv").write_text("image\tcaption\nimg/0\tred\nimg/1\tblue\n"),
            r"captions.tsv: no column names images \(.png, .jpg, .jpeg, …\) in every row",
        ),
    ],
)
def test_bad_input_is_named_with_its_line(tmp_path, spoil, message):
    write(tmp_path / "few", 8, 3)
    spoil(tmp_path / "few")
    with pytest.raises(DataError, match=message):
        unrolled.train(tmp_path / "few/captions.tsv", task="captions", out=tmp_path / "m", quiet=True)
    assert not (tmp_path / "m/model.safetensors").exists()


def test_what_is_no_image_is_refused_before_anything_is_written(model, data, run, tmp_path):
    assert run("predict", data / "model", tmp_path).code == 3
    for given, message in (
        ("a.png", r"predict: lines is 'a.png'; a list of images is wanted"),
        ([3], r"predict: lines\[0\] is a int; give a path or an array"),
        ([np.zeros((4, 4, 7))], r"the image is float64 \[4, 4, 7\]; give the path of an image"),
    ):
        with pytest.raises(UsageError, match=message):
            model.predict(given)
    with pytest.raises(UsageError, match=r"replace-unknown was given"):
        model.searching(changes={"replace_unknown": True})
    with pytest.raises(UsageError, match=r"does not generate \(it writes what an image shows"):
        model.showing("generate", {})


def test_settings_that_do_not_fit_are_named(data, tmp_path):
    for settings, message in (
        ({"text": {"source": "frames"}}, r"\[text.source\] 'frames' was given, and images are read by 'image'"),
        ({"data": {"too_long": "cut"}}, r"\[data.too_long\] 'cut' was given, and an image cannot be cut"),
    ):
        with pytest.raises(SettingsError, match=message):
            unrolled.train(data / "train/captions.tsv", out=tmp_path / "m", settings=settings, quiet=True)


def test_large_images_are_made_smaller_by_themselves(tmp_path):
    Image.new("RGB", (300, 200)).save(tmp_path / "a.png")
    (tmp_path / "t.tsv").write_text("image\tcaption\na.png\tblack\n")
    task = Captions()
    sized = task.size(part_of(Sources(data=str(tmp_path / "t.tsv")), task))
    assert sized.tree["text"]["source"] == {"kind": "image", "height": 128, "width": 128}
    assert "Images are made 128 × 128 pixels" in sized.said({"text.source.height": sized.origin})[-1]


def test_a_changed_image_is_read_anew(tmp_path):
    write(tmp_path / "few", 4, 3)
    task = Captions()
    part = part_of(Sources(data=str(tmp_path / "few/captions.tsv")), task)
    text = task.learn({"source": {"kind": "image"}, "target": {"kind": "whitespace"}}, part)
    first = task.store(tmp_path / "rows", part, text, "mark")
    assert task.store(tmp_path / "rows", part, text, "mark").fingerprint == first.fingerprint
    Image.new("RGB", (20, 12), (9, 9, 9)).save(tmp_path / "few/img/0.png")
    again = task.store(tmp_path / "rows", part, text, "mark")
    assert again.fingerprint != first.fingerprint and set(again.take("source", [0])[0][2:].tolist()) == {9}


def test_columns_are_told_by_what_is_in_them(tmp_path):
    from unrolled.data.readers import open_table

    (tmp_path / "t.csv").write_text("id,description,picture\n1,a dog,d.png\n2,a cat,c.png\n")
    table = paired(open_table(tmp_path / "t.csv"))
    assert [row.fields for row in table.rows()] == [(f"{tmp_path}/d.png", "a dog"), (f"{tmp_path}/c.png", "a cat")]
    assert table.columns == ("image", "caption") and paired(table) is table


def test_the_doctor_looks_at_images(tmp_path, capsys):
    train, test = write(tmp_path / "train", 5, 1), write(tmp_path / "test", 3, 2)
    images = tmp_path / "train/img"
    shutil.copy(images / "0.png", images / "1.png")
    Image.new("RGB", (9, 9)).save(images / "2.png")
    (images / "3.png").write_bytes(b"no")
    shutil.copy(images / "0.png", tmp_path / "test/img/2.png")
    with pytest.raises(typer.Exit):
        check(data=str(train), test=str(test))
    out = " ".join(capsys.readouterr().out.split())
    for said in (
        "1 image is not readable.",
        "captions.tsv:5",
        "1 image is of one colour from edge to edge",
        "1 image is the same as another under another name",
        "1 image is also in train, pixel by pixel",
        "all in colour",
    ):
        assert said in out, said


def test_other_columns_of_boxes(model, data, tmp_path):
    from unrolled.pipeline.captioner_tables import boxes_of, inside_boxes

    path = str(data / "test/img/0.png")
    (tmp_path / "b.tsv").write_text(f"image\tboxes\n{path}\t- 0,0,100,100\n")
    boxes = boxes_of(str(tmp_path / "b.tsv"), [path], ["red blue"])
    assert boxes == [[None, (0, 0, 100, 100)]]
    assert inside_boxes(model.align([path], ["red blue"], by_space=True), boxes).value == 1
    for cell, message in (
        ("1,2,3", r"b.tsv:2: '1,2,3' is no box. Write left,top,right,bottom in pixels"),
        ("3,0,1,9 -", r"b.tsv:2: the box 3,0,1,9 has no width or no height"),
        ("-", r"b.tsv:2: 1 boxes for the 2 words of 'red blue'"),
    ):
        (tmp_path / "b.tsv").write_text(f"image\tboxes\n{path}\t{cell}\n")
        with pytest.raises(DataError, match=message):
            boxes_of(str(tmp_path / "b.tsv"), [path], ["red blue"])
    with pytest.raises(DataError, match=r"no word has a box"):
        inside_boxes([], [])
