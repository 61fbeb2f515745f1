"""Labels of images end to end: folders and tables, shapes told apart, where that rests, what is refused and where."""

import io
import json
import shutil
import sys

import numpy as np
import pytest
import typer
from PIL import Image

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.cli.check import check
from unrolled.explain.overlay import inside
from unrolled.workshop.sources import Sources, part_of

SETTINGS = {
    "model": {"front": {"grid": {"sizes": [12, 24]}}, "dropout": 0.0},
    "train": {"epochs": 12, "learning_rate": 0.01, "batch_sentences": 16, "precision": "float32", "seed": 1},
}
SHAPES = ("cross", "square")


def shape(kind, draw):
    """A shape of 9 pixels a side on dim noise, anywhere in an image of any width; and its box."""
    width = int(draw.integers(24, 33))
    pixels = draw.integers(0, 60, size=(20, width))
    left, top = int(draw.integers(0, width - 8)), int(draw.integers(0, 12))
    one = pixels[top : top + 9, left : left + 9]
    if kind == "cross":
        one[4], one[:, 4] = 230, 230
    else:
        one[[0, 8]], one[:, [0, 8]] = 230, 230
    return Image.fromarray(pixels.astype(np.uint8)), (left, top, left + 9, top + 9)


def folders(folder, count, seed):
    """A folder for each shape; the boxes by path."""
    draw, boxes = np.random.default_rng(seed), {}
    for number in range(count):
        kind = SHAPES[number % 2]
        (folder / kind).mkdir(parents=True, exist_ok=True)
        image, box = shape(kind, draw)
        image.save(folder / kind / f"{number}.png")
        boxes[str(folder / kind / f"{number}.png")] = box
    return boxes


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    folders(folder / "train", 160, 1)
    return folder, folders(folder / "test", 40, 2)


@pytest.fixture(scope="module")
def model(data):
    return unrolled.train(data[0], out=data[0].parent / "shapes-model", settings=SETTINGS, quiet=True)


def test_shapes_anywhere_in_images_of_any_width_are_told_apart(model, data):
    assert type(model) is unrolled.ImageClassifier and model.labels == SHAPES
    part = part_of(Sources(data=str(data[0])), model.task)
    found = {one.name: one.value for one in model.test(part).scores}
    assert found["accuracy"] >= 0.95 and found["macro_f1"] >= 0.95
    shown = model.show_evaluate(part)
    assert {row["label"] for row in shown.tables["labels"][1]} == set(SHAPES) and shown.rows == 40


def test_a_path_and_its_pixels_give_the_same_whatever_stands_beside(model, data):
    paths = list(data[1])[:7]
    together = np.array(model.probabilities(paths))
    np.testing.assert_allclose(
        model.probabilities([np.asarray(Image.open(path)) for path in paths]), together, atol=1e-5
    )
    np.testing.assert_allclose([model.probabilities([path])[0] for path in paths], together, atol=1e-5)
    assert model.predict(paths) == [SHAPES[int(row.argmax())] for row in together]
    vectors = model.embed(paths)
    assert vectors.shape == (7, model.network.pooling.output_size)
    np.testing.assert_allclose(model.embed(paths[3:4])[0], vectors[3], atol=1e-5)


def test_the_picture_lies_on_the_shape(model, data, tmp_path):
    hits = []
    for path, box in list(data[1].items())[:20]:
        seen = model.explain(path, trusted=False)
        assert seen.answer in SHAPES and seen.weights.shape[0] == 2
        np.testing.assert_allclose(seen.weights[0].sum(), 1, atol=1e-4)
        hits.append(inside(seen.centre(0), box))
    assert np.mean(hits) >= 0.6  # a box is an eighth of the image
    own = model.explain(path)
    other = next(name for name in SHAPES if name != own.answer)
    seen = model.explain(path, other)
    assert seen.labels == (other,) and seen.answer == own.answer and own.labels == (own.answer,)
    assert seen.faithfulness["deletion"].value != own.faithfulness["deletion"].value
    assert "a label asked for loses" in " ".join(seen.text().split())
    assert "an answer loses" in " ".join(own.text().split())
    seen = model.explain(path, "square")
    assert seen.faithfulness["deletion"].value is not None
    assert [word.partition(": ")[2] for word in seen.words] == ["attention", "rests on"]
    for kind in ("svg", "png", "html", "json"):
        assert seen.to(tmp_path / f"seen.{kind}").stat().st_size > 200
    written = json.loads((tmp_path / "seen.json").read_text())
    assert written["labels"] == ["square"] and written["answer"] == own.answer
    with pytest.raises(UsageError, match=r"no label is called 'sqare'. Did you mean 'square'"):
        model.explain(path, "sqare")
    with pytest.raises(UsageError, match=r"explain: no label is called 3. Known: cross, square"):
        model.explain(path, 3)


def test_deletion_says_that_answers_rest_on_what_is_shown(model):
    found = model.record["faithfulness"]["deletion"]
    assert found["value"] > found["chance"] + 0.1 and "quarter of its regions" in found["sentence"]


def test_every_promise_holds_on_made_up_images_and_on_a_file(model, data):
    for promises in (model.promises(None, 12), model.promises(str(data[0] / "test"), 8)):
        assert [one.name for one in promises if not one.holds] == []


def test_which_of_several_images_is_explained_is_said(model, data, run, tmp_path):
    folder, first = data[0] / "test", min(data[1])
    model.save(tmp_path / "model")
    several, one = run("explain", tmp_path / "model", folder, "--no-trust"), run("explain", tmp_path / "model", first)
    assert f"This is image 1 of {folder}; another: '{folder}#2'." in several.err and "This is" not in one.err
    assert model.show_explain(str(folder), untrusted=True).source_text == first


def test_predict_reads_a_file_a_folder_folders_of_labels_and_a_table(model, data, tmp_path, monkeypatch):
    folder = data[0] / "test"
    inside_one = list(model.show_predict(str(folder / "cross")))
    assert len(inside_one) == 20
    assert [one.tree["image"] for one in model.show_predict(str(folder))] == sorted(data[1])
    (single,) = model.show_predict(str(folder / "cross/0.png"), nbest=2)
    assert single.text.count("\n") == 1 and single.tree["probabilities"].keys() == set(SHAPES)
    (tmp_path / "table.csv").write_text("path\n" + "\n".join(sorted(data[1])[:3]) + "\n")
    assert [one.tree["label"] for one in model.show_predict(str(tmp_path / "table.csv"))] == model.predict(
        sorted(data[1])[:3]
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(sorted(data[1])[:2]).encode())))
    assert [one.tree["label"] for one in model.show_predict("-")] == model.predict(sorted(data[1])[:2])
    loaded = unrolled.load(data[0].parent / "shapes-model")
    assert loaded.predict(sorted(data[1])[:5]) == model.predict(sorted(data[1])[:5])
    assert model.show_explain(f"{folder}#3", untrusted=True).source_text == sorted(data[1])[2]


def table(folder, count=60, label="label", names=SHAPES):
    draw, rows = np.random.default_rng(4), [f"path,{label}"]
    for number in range(count):
        kind = SHAPES[number % 2]
        shape(kind, draw)[0].save(folder / f"{number}.png")
        rows.append(f"{number}.png,{names[number % 2]}")
    (folder / "images.csv").write_text("\n".join(rows) + "\n")
    return folder / "images.csv"


FEW = SETTINGS | {"train": SETTINGS["train"] | {"epochs": 1}}


def test_a_table_of_paths_and_few_short_values_is_recognised_and_texts_are_not(tmp_path, capsys):
    from unrolled.data.readers import open_table
    from unrolled.tasks import recognise

    for label, task in (("label", "images"), ("kind", "images"), ("caption", "captions")):
        found, said = recognise({"train": open_table(table(tmp_path, label=label))}, "translate")
        assert found == task, label
        assert f"The task is {task} (another: --task)." in said
    assert (
        "the column 'path' names images and 'kind'"
        in recognise({"train": open_table(table(tmp_path, label="kind"))}, "translate")[1]
    )


def test_several_labels_of_an_image(tmp_path):
    path = table(tmp_path, 80, names=('"line,bright"', "bright"))
    settings = SETTINGS | {"text": {"separator": ","}, "train": SETTINGS["train"] | {"epochs": 15}}
    model = unrolled.train(path, out=tmp_path / "model", settings=settings, quiet=True)
    assert model.labels == ("bright", "line")
    found = model.predict([str(tmp_path / f"{number}.png") for number in range(20)])
    wanted = [("bright,line", "bright")[place % 2] for place in range(20)]
    assert np.mean([one == two for one, two in zip(found, wanted, strict=True)]) >= 0.9
    assert [one.name for one in model.promises(None, 8) if not one.holds] == []
    place = next(number for number in range(0, 20, 2) if found[number] == "bright,line")
    seen = model.explain(str(tmp_path / f"{place}.png"))
    said = dict(zip(model.labels, model.probabilities([str(tmp_path / f"{place}.png")])[0], strict=True))
    assert seen.words == ["bright, line: attention", "bright: rests on", "line: rests on"]
    assert seen.target_text == f"bright ({said['bright']:.3f}), line ({said['line']:.3f})"
    assert seen.to_dict()["labels"] == ["bright", "line"] and seen.answer == "bright,line"
    assert seen.faithfulness["deletion"].cases == 2 and "line: rests on" in seen.text()
    assert model.explain(str(tmp_path / "1.png"), "line,bright", trusted=False).labels == ("line", "bright")
    with pytest.raises(UsageError, match=r"no label is called 'lin'. Did you mean 'line'"):
        model.explain(str(tmp_path / "1.png"), "bright,lin")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda f: (f / "3.png").write_bytes(b"no image"), r"images.csv:5: .*3.png: this is no image that is read"),
        (lambda f: (f / "3.png").unlink(), r"images.csv:5: .*3.png: there is no such image"),
        (lambda f: Image.new("L", (1, 1)).save(f / "3.png"), r"images.csv:5: .*3.png: 1 × 1 pixels"),
        (lambda f: rewrite(f, "3.png,square", "3.png,"), r"images.csv:5: the label of .*3.png is empty. Write one"),
        (lambda f: rewrite(f, ",square", ",cross"), r"images.csv: all 60 rows have the label 'cross'"),
        (lambda f: rewrite(f, "3.png,", "3.gid,"), r"no column names images \(.png, .jpg, .jpeg, …\) in every row"),
    ],
    ids=["damaged", "missing", "one pixel", "empty label", "one label", "no image"],
)
def test_what_cannot_be_used_is_named_by_its_line(tmp_path, change, message):
    path = table(tmp_path)
    change(tmp_path)
    with pytest.raises(DataError, match=message):
        unrolled.train(path, task="images", out=tmp_path / "model", settings=FEW, quiet=True)


def rewrite(folder, old, new):
    file = folder / "images.csv"
    file.write_text(file.read_text().replace(old, new))


def test_folders_that_are_no_labels_are_refused(tmp_path):
    folders(tmp_path / "shapes", 8, 3)
    (tmp_path / "shapes/disc").mkdir()
    with pytest.raises(DataError, match=r"shapes: nothing is in the folder of the label 'disc'. Remove it"):
        unrolled.train(tmp_path / "shapes", out=tmp_path / "model", settings=FEW, quiet=True)
    (tmp_path / "shapes/disc").rmdir()
    shutil.copytree(tmp_path / "shapes", tmp_path / "both/train")
    shutil.copy(tmp_path / "shapes/cross/0.png", tmp_path / "both/train/loose.png")
    with pytest.raises(DataError, match=r"train: loose.png lies beside the folders of labels, and so has none"):
        unrolled.train(tmp_path / "both", out=tmp_path / "model", settings=FEW, quiet=True)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"text": {"source": {"kind": "audio"}}}, r"\[text.source\] 'audio' was given, and images are read by 'image'"),
        (
            {"model": {"front": {"kind": "frames"}}},
            r"\[model.front\] 'frames' was given, and images are read by 'image'",
        ),
        ({"data": {"too_long": "cut"}}, r"an image cannot be cut"),
        (
            {"task": {"label": "kind"}},
            r"\[task.label\] 'kind' was given, and of .*images.csv the columns beside the files are",
        ),
        ({"task": {"label": 1}}, r"\[task.label\] 1 was given, and of .*images.csv the columns beside the files are"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, message):
    path = table(tmp_path)
    if "task" in settings:
        path.write_text(path.read_text().replace("\n", ",x\n"))
    with pytest.raises(SettingsError, match=message):
        unrolled.train(path, task="images", out=tmp_path / "model", settings=settings, quiet=True)


@pytest.mark.parametrize(
    "given, message",
    [
        ("a.png", r"predict: images is 'a.png'; a list of images is wanted"),
        ([3], r"predict: images\[0\] is a int; give a path or an array"),
    ],
)
def test_what_is_no_image_is_refused(model, given, message):
    with pytest.raises(UsageError, match=message):
        model.predict(given)


def test_the_doctor_looks_at_images_and_their_labels(tmp_path, capsys):
    path = table(tmp_path)
    shutil.copy(tmp_path / "0.png", tmp_path / "1.png")  # of the other label
    (tmp_path / "2.png").write_bytes(b"damaged")
    rewrite(tmp_path, "5.png,square", "5.png,")
    with pytest.raises(typer.Exit) as stopped:
        check(data=str(path))
    said = capsys.readouterr().out
    assert stopped.value.exit_code == 3
    assert "1 image is not readable" in said and "images.csv:4" in said
    assert "is empty. Write one" in said and "images.csv:7" in said
    assert "another label" in said and "images.csv:3" in said
    rewrite(tmp_path, ",square", ",cross")
    with pytest.raises(typer.Exit):
        check(data=str(path))
    assert "one label" in capsys.readouterr().out


def test_the_doctor_finds_what_train_holds_too(data, tmp_path, capsys):
    shutil.copytree(data[0], tmp_path / "all")
    shutil.copy(tmp_path / "all/train/cross/0.png", tmp_path / "all/test/square/again.png")
    (tmp_path / "all/test/disc").mkdir()
    shape("cross", np.random.default_rng(9))[0].save(tmp_path / "all/test/disc/new.png")
    check(data=str(tmp_path / "all"))
    said = capsys.readouterr().out
    assert "1 image is also in train, pixel by pixel" in said and "again.png" in said
    assert "1 class of 'label' never seen in train" in said and "disc" in said


def test_a_column_that_is_not_there_is_refused_in_folders_and_in_tables_of_two(data, tmp_path):
    settings = FEW | {"task": {"label": "nosuch"}}
    with pytest.raises(
        SettingsError, match=r"\[task.label\] 'nosuch' was given, and .* is a folder of labels: it has no"
    ):
        unrolled.train(data[0], out=tmp_path / "model", settings=settings, quiet=True)
    with pytest.raises(SettingsError, match=r"'nosuch' was given, and of .*images.csv the columns beside .* are label"):
        unrolled.train(table(tmp_path), out=tmp_path / "model", settings=settings, quiet=True)


def test_an_empty_cell_is_no_label_where_a_row_may_have_several(tmp_path, capsys):
    path = table(tmp_path, names=('"line,bright"', "bright"))
    rewrite(tmp_path, "3.png,bright", "3.png,")
    check(data=str(path))
    assert "is empty" not in capsys.readouterr().out
    model = unrolled.train(path, out=tmp_path / "model", settings=FEW | {"text": {"separator": ","}}, quiet=True)
    assert model.labels == ("bright", "line")
    part = part_of(Sources(data=str(path)), unrolled.load(tmp_path / "model").task)
    assert model.test(part).rows == 60


def test_the_doctor_tells_each_new_label_of_a_cell_with_several(tmp_path, capsys):
    path, valid = table(tmp_path, names=('"line,bright"', "bright")), tmp_path / "valid.csv"
    valid.write_text('image,label\n3.png,"bright,line"\n4.png,"line,round"\n')
    with pytest.raises(typer.Exit) as stopped:
        check(data=str(path), valid=str(valid))
    said = " ".join(capsys.readouterr().out.split())
    assert stopped.value.exit_code == 3
    assert "error: valid: 1 class of 'label' never seen in train, in 1 row: round. Training refuses them" in said
    valid.write_text('image,label\n3.png,"bright,line"\n')
    check(data=str(path), valid=str(valid))
    assert "never seen" not in capsys.readouterr().out


def test_labels_that_training_lacks_are_named_by_the_file(tmp_path, capsys):
    for name in ("train/cat/1", "train/cat/2", "train/dog/3", "train/dog/4", "valid/cat/5", "valid/fox/6"):
        (tmp_path / "h" / name).parent.mkdir(parents=True, exist_ok=True)
        shape("cross", np.random.default_rng(int(name[-1])))[0].save(tmp_path / "h" / f"{name}.png")
    with pytest.raises(DataError, match=r"^[^ ]*h/valid/fox/6.png: the label 'fox' is none of the 2"):
        unrolled.train(tmp_path / "h", out=tmp_path / "model", settings=FEW, quiet=True)
    with pytest.raises(typer.Exit) as stopped:
        check(data=str(tmp_path / "h"))
    said = " ".join(capsys.readouterr().out.split())
    assert stopped.value.exit_code == 3 and "never seen in train, in 1 row: fox. Training refuses them" in said
    assert said.count("6.png") == 1 and "vocabulary" not in said and "character" not in said.split("never seen")[1]
    Image.new("L", (1, 1)).save(tmp_path / "h/train/cat/1.png")
    with pytest.raises(DataError, match=r"^[^ ]*1.png: 1 × 1 pixels"):
        unrolled.train(tmp_path / "h/train", out=tmp_path / "model", settings=FEW, quiet=True)


def test_folders_called_otherwise_are_told_the_labels_that_are_known(model, data, tmp_path):
    for name in ("disc", "ring"):
        shutil.copytree(data[0] / "test/cross", tmp_path / "other" / name)
    with pytest.raises(DataError, match=r"'disc' and all .* \(cross, square\). Call the folders as the labels"):
        model.show_evaluate(part_of(Sources(data=str(tmp_path / "other")), model.task))
    with pytest.raises(
        DataError, match=r"20 images lie here, in no folder of a label.*cross: give|give the folder that"
    ):
        part_of(Sources(data=str(data[0] / "test/cross")), model.task)


def test_a_text_classifier_does_not_read_names_of_files(data, tmp_path):
    with pytest.raises(DataError, match=r"a text classifier would read the names of the files. Take --task images"):
        unrolled.train(data[0], task="classify", out=tmp_path / "model", quiet=True)
