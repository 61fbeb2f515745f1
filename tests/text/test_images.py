"""Images as pixels: every mode of Pillow, what is refused and where, and what a network needs to know."""

import io
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from unrolled.base.errors import DataError, MissingPartError, UsageError
from unrolled.text.images import ImageReader
from unrolled.text.pixels import array_of, in_grey, read_pixels, sized
from unrolled.text.reading import Reader

MOST = 1_000_000
RED = np.array([[[255, 0, 0], [0, 255, 0], [9, 9, 9]], [[0, 0, 255], [7, 7, 7], [1, 2, 3]]], np.uint8)


def saved(folder, name, image, **more):
    path = folder / name
    image.save(path, **more)
    return str(path)


def test_colour_comes_as_it_is_and_grey_with_one_channel(tmp_path):
    np.testing.assert_array_equal(read_pixels(saved(tmp_path, "a.png", Image.fromarray(RED)), MOST), RED)
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    np.testing.assert_array_equal(read_pixels(saved(tmp_path, "g.png", Image.fromarray(grey)), MOST)[:, :, 0], grey)


def test_every_mode_gives_the_same_picture(tmp_path):
    image = Image.fromarray(RED)
    palette = image.quantize(6)
    clear = image.convert("RGBA")
    clear.putpixel((2, 1), (0, 0, 0, 0))  # a clear pixel is white
    over = RED.copy()
    over[1, 2] = 255
    for name, one, wanted in [
        ("p.png", palette, np.asarray(palette.convert("RGB"))),
        ("c.png", clear, over),
        ("b.png", Image.fromarray(np.array([[True, False]] * 2)), np.array([[[255], [0]]] * 2)),
        ("s.tif", image.convert("CMYK"), np.asarray(image.convert("CMYK").convert("RGB"))),
        ("w.webp", image, None),
        ("j.bmp", image, RED),
        ("m.ppm", image, RED),
        ("g.gif", palette, np.asarray(palette.convert("RGB"))),
    ]:
        found = read_pixels(saved(tmp_path, name, one), MOST)
        assert found.dtype == np.uint8 and found.shape[:2] == (one.height, one.width), name
        if wanted is not None:
            np.testing.assert_array_equal(found, wanted, err_msg=name)


def test_grey_with_alpha_and_sixteen_bits_become_eight(tmp_path):
    alpha = Image.fromarray(np.array([[10, 20], [30, 40]], np.uint8)).convert("LA")
    alpha.putpixel((0, 0), (10, 0))
    assert read_pixels(saved(tmp_path, "la.png", alpha), MOST)[:, :, 0].tolist() == [[255, 20], [30, 40]]
    deep = np.array([[0, 257], [25700, 65535]], np.uint16)
    assert read_pixels(saved(tmp_path, "d.png", Image.fromarray(deep)), MOST)[:, :, 0].tolist() == [[0, 1], [100, 255]]


def test_a_photo_stands_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    path = saved(tmp_path, "t.png", Image.fromarray(RED), exif=exif)
    np.testing.assert_array_equal(read_pixels(path, MOST), np.rot90(RED, -1))


def bomb(width, height):
    """A PNG whose head promises ``width`` × ``height`` pixels; it holds none."""

    def chunk(name, data):
        return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda f: None, r"x.png: there is no such image. Did you mean '.*y.png'\? Paths in a table start in"),
        (lambda f: f.mkdir(), r"x.png: this is a folder where an image is expected"),
        (lambda f: f.write_bytes(b""), r"x.png: this is no image that is read \(PNG, JPEG"),
        (lambda f: f.write_text("hello"), r"x.png: this is no image that is read"),
        (lambda f: f.write_bytes(bomb(2_000, 2_000)), r"x.png: 2,000 × 2,000 = 4,000,000 pixels; at most 1,000,000"),
        (lambda f: f.write_bytes(bomb(60_000, 60_000)), r"x.png: 3,600,000,000 pixels; at most 1,000,000 are unpacked"),
        (lambda f: f.write_bytes(bomb(1, 1)), r"x.png: 1 × 1 pixels; sides from 2 to 65,535 are read"),
        (lambda f: f.write_bytes(bomb(3, 3)), r"x.png: the image is damaged or cut off"),
        (lambda f: Image.new("F", (3, 3)).save(f, format="TIFF"), r"x.png: its pixels are fractions without a known"),
        (
            lambda f: Image.fromarray(np.full((2, 2), 70_000, np.int32)).save(f, format="TIFF"),
            r"x.png: its pixels have more than 16 bits",
        ),
        (
            lambda f: Image.new("L", (4, 4)).save(
                f, format="GIF", save_all=True, append_images=[Image.new("L", (4, 4), 9)]
            ),
            r"x.png: 2 images in one file, moving or by page. Save the one that is meant",
        ),
    ],
)  # fmt: skip
def test_what_is_no_good_image_is_refused_by_name(tmp_path, make, message):
    (tmp_path / "y.png").write_bytes(b"")
    make(tmp_path / "x.png")
    with pytest.raises(DataError, match=message):
        read_pixels(str(tmp_path / "x.png"), MOST)


@settings(max_examples=150)
@given(kind=st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"]), cut=st.floats(0, 1), data=st.data())
def test_a_damaged_file_ends_in_a_message_or_in_pixels(tmp_path_factory, kind, cut, data):
    file = io.BytesIO()
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(file, format=kind)
    whole = bytearray(file.getvalue()[: int(cut * len(file.getvalue()))])
    for place in data.draw(st.lists(st.integers(0, max(len(whole) - 1, 0)), max_size=4)):
        if whole:
            whole[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "x"
    path.write_bytes(whole)
    try:
        assert read_pixels(str(path), MOST).ndim == 3
    except DataError as error:
        assert str(error).startswith(f"{path}: ")


def test_without_pillow_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        MissingPartError, match=r"PIL is not installed. Install it with: pip install 'unrolled\[images\]'"
    ):
        read_pixels("a.png", MOST)


def test_images_are_brought_to_a_size_as_pillow_does_it():
    draw = np.random.default_rng(1).integers(0, 256, (12, 20, 3)).astype(np.uint8)
    image = Image.fromarray(draw)
    np.testing.assert_array_equal(sized(draw, 6, 5), np.asarray(image.resize((5, 6), Image.Resampling.BILINEAR)))
    assert sized(draw, 6, None).shape == (6, 10, 3) and sized(draw, None, 40).shape == (24, 40, 3)
    assert sized(draw, None, None) is draw
    np.testing.assert_allclose(in_grey(draw)[:, :, 0], np.asarray(image.convert("L")), atol=1)


def learnt(folder, *arrays, **given):
    paths = [saved(folder, f"{place}.png", Image.fromarray(array)) for place, array in enumerate(arrays)]
    reader = ImageReader(**given)
    reader.learn([*paths, paths[0]])
    return reader, paths


def test_a_reader_learns_the_scale_and_whether_there_is_colour(tmp_path):
    draw = np.random.default_rng(2)
    arrays = [draw.integers(0, 256, (3, width, 3)).astype(np.uint8) for width in (4, 6)]
    reader, paths = learnt(tmp_path, *arrays)
    flattened = np.concatenate([one.reshape(-1, 3) for one in arrays]).astype(float)
    np.testing.assert_allclose(reader.mean, flattened.mean(axis=0))
    np.testing.assert_allclose(reader.deviation, flattened.std(axis=0))
    assert reader.channels == 3 and reader.kept is None
    row = reader.encode_ids(paths)[1]
    assert row.dtype == np.uint16 and row[:2].tolist() == [6, 3]
    np.testing.assert_array_equal(reader.stored(row), arrays[1])
    grey = np.repeat(arrays[0][:, :, :1], 3, axis=2)
    reader, paths = learnt(tmp_path, grey)
    assert reader.channels == 1 and reader.scaled(paths[0]).shape == (3, 4, 1)
    assert learnt(tmp_path, grey, colour="colour")[0].channels == 3
    assert learnt(tmp_path, arrays[0], colour="grey")[0].scaled(paths[0]).shape == (3, 4, 1)


def test_where_all_are_of_one_size_others_are_refused(tmp_path):
    reader, _ = learnt(tmp_path, RED, RED)
    other = saved(tmp_path, "other.png", Image.new("RGB", (5, 7)))
    with pytest.raises(DataError, match=r"other.png: 5 × 7 pixels, and all training images have 3 × 2. Bring it to"):
        reader.scaled(other)
    fitted, _ = learnt(tmp_path, RED, RED, height=4, width=9)
    assert fitted.scaled(other).shape == (4, 9, 3)


def test_a_reader_is_saved_whole(tmp_path):
    reader, paths = learnt(tmp_path, RED, height=5)
    reader.save(tmp_path / "images.json")
    again = Reader.load(tmp_path / "images.json")
    assert again.fingerprint() == reader.fingerprint() and again.settings == ImageReader(height=5).settings
    np.testing.assert_array_equal(again.scaled(paths[0]), reader.scaled(paths[0]))
    (tmp_path / "images.json").write_text("{}")
    with pytest.raises(DataError, match=r"images.json: damaged, it does not hold the reader of the source"):
        Reader.load(tmp_path / "images.json")


def test_images_of_different_sizes_stand_side_by_side():
    small = np.full((3, 2, 1), 7, np.uint8)
    reader = ImageReader(colour="grey")
    reader.stride = 2
    pixels, mask = reader.padded([RED[:, :, :1], small])
    assert pixels.shape == (2, 3, 3, 2) and pixels.dtype == np.float32
    np.testing.assert_array_equal(pixels[0, :2, :, :1], RED[:, :, :1])
    np.testing.assert_array_equal(pixels[1, :, :, 0] == 7, pixels[1, :, :, 1] == 1)
    assert pixels[:, :, :, 1].sum(axis=(1, 2)).tolist() == [6, 6]
    assert mask.tolist() == [[True, True], [True, True]]  # 1 × 2 places and 2 × 1


def test_arrays_are_taken_as_pixels():
    np.testing.assert_array_equal(array_of(RED, "x"), RED)
    np.testing.assert_array_equal(array_of(RED / 255, "x"), RED)
    np.testing.assert_array_equal(array_of(np.array([[True, False]]), "x"), [[[255], [0]]])
    clear = np.concatenate([RED, np.zeros((2, 3, 1), np.uint8)], axis=2)
    assert (array_of(clear, "x") == 255).all()
    for wrong, message in [
        (np.zeros((2, 3, 2)), r"x is float64 \[2, 3, 2\]; give the path of an image, or an array \[height, width\]"),
        (["a"], r"x is list; give the path"),
        (np.full((2, 2), 300), r"x has pixels that are not from 0 to 255"),
        (np.full((2, 2), np.nan), r"x has pixels that are not from 0 to 1"),
    ]:
        with pytest.raises(UsageError, match=message):
            array_of(wrong, "x")
