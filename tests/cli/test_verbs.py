"""Every verb on one small model: what it prints, what it writes, which exit code it leaves with."""

import json
import math

import numpy as np
import pytest
import torch

import unrolled
from unrolled.base.protocol import END


def lines_file(tmp_path, text):
    path = tmp_path / "lines.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_model_learnt_its_words(trained, run):
    result = run("evaluate", trained.folder, trained.valid, "--json")
    scores = {score["name"]: score["value"] for score in json.loads(result.out)["scores"]}
    assert result.code == 0
    assert scores["exact_match"] >= 0.9


def test_predict_gives_a_line_for_a_line_in_order(trained, run, tmp_path):
    path = lines_file(tmp_path, "one red cat\n\n   \ntwo dogs\nsees\n")
    result = run("predict", trained.folder, path)
    assert result.code == 0
    lines = result.out.split("\n")
    assert lines[0] == "un rouge chat"
    assert lines[1] == lines[2] == ""
    assert lines[4] == "voit"
    assert len(lines) == 6 and lines[5] == ""


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("beam", [1, 3])
def test_predict_does_not_depend_on_the_batch(trained, run, tmp_path, batch, beam):
    path = lines_file(tmp_path, "one red cat sees two\ncat\ntwo one\nred red red dog\n")
    whole = run("predict", trained.folder, path, "--beam", beam).out
    assert run("predict", trained.folder, path, "--beam", beam, "--batch", batch).out == whole


def test_predict_n_best_with_scores_in_order(trained, run, tmp_path):
    result = run("predict", trained.folder, lines_file(tmp_path, "one cat\ndog\n"), "--beam", 4, "--nbest", 3)
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[0] for row in rows] == ["0"] * 3 + ["1"] * 3
    for start in (0, 3):
        scores = [float(row[1]) for row in rows[start : start + 3]]
        assert scores == sorted(scores, reverse=True)
        assert len({row[2] for row in rows[start : start + 3]}) == 3


def test_predict_obeys_its_rules(trained, run, tmp_path):
    path = lines_file(tmp_path, "one red cat sees two\n")
    assert len(run("predict", trained.folder, path, "--max-length", 2).out.split()) == 2
    assert len(run("predict", trained.folder, path, "--min-length", 9).out.split()) >= 9
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("chien chien\n")
    assert run("predict", trained.folder, path, "--prefix", prefix).out.startswith("chien chien")
    repeated = lines_file(tmp_path, "red red red red red\n")
    words = run("predict", trained.folder, repeated, "--no-repeat-ngram", 1, "--beam", 3).out.split()
    assert len(words) == len(set(words))


def test_sampling_depends_on_its_seed_alone(trained, run, tmp_path):
    path = lines_file(tmp_path, "one red cat sees two\ndog\n")
    flags = ("--search", "sampling", "--temperature", 3.0)
    first = run("predict", trained.folder, path, *flags, "--seed", 1).out
    assert run("predict", trained.folder, path, *flags, "--seed", 1, "--batch", 1).out == first
    assert run("predict", trained.folder, path, *flags, "--seed", 2).out != first


def test_predict_attention_on_surface_words(trained, run, tmp_path):
    result = run("predict", trained.folder, lines_file(tmp_path, "one red cat\n\n"), "--attention", "--nbest", 2)
    first, second = (json.loads(line) for line in result.out.splitlines())
    assert first["source"] == "one red cat" and len(first["outputs"]) == 2
    for output in first["outputs"]:
        alignment = output["alignment"]
        weights = np.array(alignment["weights"])
        assert alignment["source"] == ["one", "red", "cat"]
        assert weights.shape == (len(alignment["target"]), 3)
        assert (weights >= 0).all() and (weights.sum(1) <= 1 + 1e-3).all()
    assert second["outputs"] == []


def test_replaced_unknown_is_the_users_own_word(trained, run, tmp_path):
    path = lines_file(tmp_path, "one zzz cat\n")
    assert "<unk>" not in run("predict", trained.folder, path, "--replace-unknown").out


def test_score_is_the_log_probability_that_predict_reports(trained, run, tmp_path):
    path = lines_file(tmp_path, "one red cat\n")
    output = json.loads(run("predict", trained.folder, path, "--json").out)["outputs"][0]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(f"one red cat\t{output['text']}\n")
    rows = [json.loads(line) for line in run("score", trained.folder, pairs, "--json", "--tokens").out.splitlines()]
    assert rows[0]["log_prob"] == pytest.approx(output["log_prob"], abs=1e-4)
    assert rows[0]["tokens"][-1][0] == "</s>"
    assert rows[-1]["perplexity"] == pytest.approx(math.exp(-rows[0]["log_prob"] / rows[0]["symbols"]))


def test_tokens_are_written_as_json_alone(trained, run):
    result = run("score", trained.folder, trained.data, "--tokens")
    assert result.code == 2 and "--json" in result.err and result.out == ""


def test_a_prefix_without_a_symbol_is_told(trained, run, tmp_path):
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("chien\nzebra chien\n")
    result = run("predict", trained.folder, lines_file(tmp_path, "one red cat\none red cat\n"), "--prefix", prefix)
    assert result.code == 0 and result.err.count("no symbol for") == 1 and "'zebra chien'" in result.err


@pytest.mark.parametrize("suffix", ["svg", "png", "html", "json"])
def test_explain_writes_a_picture(trained, run, tmp_path, suffix):
    path = tmp_path / f"picture.{suffix}"
    result = run("explain", trained.folder, "one red cat", "--to", path)
    assert result.code == 0 and path.stat().st_size > 500
    assert "un rouge chat" in result.out


def test_explain_finds_the_diagonal_and_says_how_far_to_trust_it(trained, run):
    found = json.loads(run("explain", trained.folder, "one red cat", "--json").out)
    assert found["target"]["words"] == ["un", "rouge", "chat"]
    assert 0 <= found["faithfulness"]["top_agreement"]["value"] <= 1
    given = json.loads(run("explain", trained.folder, "one red cat", "--target", "chat un", "--json").out)
    assert given["target"]["words"] == ["chat", "un"]


def test_explain_of_an_output_without_words_says_so(trained, run, tmp_path):
    model = unrolled.load(trained.folder)
    with torch.no_grad():
        model.network.output.bias[END] += 100
    model.save(tmp_path / "silent")
    for suffix in ("svg", "png", "html", "json"):
        result = run("explain", tmp_path / "silent", "one red cat", "--to", tmp_path / f"picture.{suffix}")
        assert result.code == 0 and (tmp_path / f"picture.{suffix}").stat().st_size > 200
        assert "the model writes nothing here, so there is little to show. Another output: --target" in result.err
    shown = json.loads(run("explain", tmp_path / "silent", "one red cat", "--json").out)
    assert shown["target"]["words"] == [] and len(shown["end_row"]) == 3 and shown["faithfulness"] is None
    assert "nothing" not in run("explain", tmp_path / "silent", "one red cat", "--target", "un").err


def test_an_option_of_another_task_is_refused_by_the_name_that_it_has(trained, run):
    result = run("explain", trained.folder, "one", "--method", "pca")
    assert result.code == 2 and "It takes: --target, --features, --no-trust." in result.err


def test_evaluate_with_gold_links_and_compare(trained, run, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("one red cat\tun rouge chat\ntwo dog\tdeux chien\n")
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-1 2-2\n0-0 1p1\n")
    result = run(
        "evaluate", trained.folder, pairs, "--links", links, "--compare", trained.folder, "--by-length", "--json"
    )
    found = json.loads(result.out)
    scores = {score["name"]: score["value"] for score in found["scores"]}
    assert 0 <= scores["aer"] <= 1 and scores["aer_diagonal"] == 0
    assert all(row["difference"] == 0 for row in found["compare"])
    assert run("evaluate", trained.folder, pairs, "--links", links).code == 0


def test_describe_counts_what_is_there(trained, run):
    import unrolled

    found = json.loads(run("describe", trained.folder, "--json").out)
    network = unrolled.load(str(trained.folder)).network
    assert found["parameters"] == sum(weight.numel() for weight in network.parameters())
    assert found["parts"][0]["parameters"] == found["parameters"]
    assert "4(mn + n² + n)" in run("describe", "luong-small").out


def test_selfcheck_holds(trained, run):
    result = run("selfcheck", trained.folder, "--json")
    checks = json.loads(result.out)["checks"]
    assert result.code == 0 and len(checks) == 7
    assert all(check["holds"] for check in checks), checks


def test_python_surface(trained, tmp_path):
    import unrolled

    model = unrolled.load(str(trained.folder))
    assert model.predict(["one red cat", ""]) == ["un rouge chat", ""]
    picture = model.explain("one red cat")
    assert isinstance(picture, unrolled.Explanation) and "<svg" in picture._repr_html_()
    again = unrolled.load(str(model.save(tmp_path / "copy")))
    assert again.predict(["two dog"]) == model.predict(["two dog"])
    assert {score.name for score in model.evaluate(["one"], ["un"])} >= {"bleu", "chrf", "exact_match"}


def test_the_card_is_filled(trained):
    import unrolled

    card = (trained.folder / "README.md").read_text(encoding="utf-8")
    assert "exact_match" in card and "training rows" in card
    assert "GRU" in card and "seed" in card
    total = sum(weight.numel() for weight in unrolled.load(str(trained.folder)).network.parameters())
    assert f"with {total:,} parameters" in card


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("meta", "error: --device: there is no 'meta' on this machine. Give cpu, or auto."),
        ("cuda:77", "error: --device: there is no 'cuda:77' on this machine. Give cpu, or auto."),
        ("foo", "error: --device: 'foo' was given; known: auto, cpu, cuda, cuda:0, cuda:1 …"),
    ],
)
def test_a_device_that_is_not_there_is_refused(trained, run, device, message):
    result = run("predict", trained.folder, trained.valid, "--device", device)
    assert (result.code, result.err.strip()) == (2, message)


def test_remarks_that_differ_in_numbers_are_counted_together(trained, run, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("one two red\n" * 2 + "red cat dog sees\n" * 3)
    result = run("predict", trained.folder, lines, "--max-length", 1)
    (said,) = [line for line in result.err.splitlines() if " of 5 outputs" in line]
    assert said.startswith("5 of 5 outputs: The output was cut after 1 symbol")


def test_a_replaced_unknown_keeps_its_space(trained):
    from unrolled.text.tokenizer import TOKENIZERS

    tokenizer = TOKENIZERS.build("word")
    tokenizer.train(["un chat rouge"])
    names = [tokenizer.standing_in("zzz") if name == "<unk>" else name for name in ("▁un", "<unk>", "▁rouge", "<unk>")]
    assert tokenizer.join(names) == "un zzz rouge zzz"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--temperature", 2), "--temperature 2.0 was given, and only the search 'sampling' reads it"),
        (("--top-k", 3), "--top-k 3 was given, and only the search 'sampling' reads it"),
        (("--seed", 3), "--seed 3 was given, and only the search 'sampling' reads it"),
        (("--search", "argmax", "--beam", 4), "Give --search beam, or leave --beam out."),
        (("--beam", 1, "--nbest", 5), "--nbest 5 needs --beam 5 or more, and --beam 1 was given. Give --beam 5"),
        (("--nbest", 5), "--nbest 5 needs --beam 5 or more, and the saved search has a beam of 2. Give --beam 5"),
        (
            ("--search", "argmax", "--nbest", 5),
            "--search argmax finds one output a line. Give --search beam with --beam 5",
        ),
        (("--nbest", 5, "--top-k", 3), "--top-k 3 was given, and only the search 'sampling' reads it"),
    ],
)
def test_what_a_search_does_not_read_or_find_is_refused(trained, run, tmp_path, flags, said):
    result = run("predict", trained.folder, lines_file(tmp_path, "one\n"), *flags)
    assert result.code == 2 and said in result.err and result.out == ""


def test_prefixes_that_do_not_fit_are_refused_before_anything_is_written(trained, run, tmp_path):
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("un\nun\nun\n")
    result = run("predict", trained.folder, lines_file(tmp_path, "one\ntwo\n"), "--prefix", prefix)
    assert result.code == 2 and "3 prefixes for 2 lines" in result.err and result.out == ""


def test_a_loop_is_named_by_its_words(trained, run, tmp_path):
    path = lines_file(tmp_path, "one\n")
    prefix = tmp_path / "prefix.txt"
    prefix.write_text("chien " * 8 + "\n")
    assert "'chien'" in run("predict", trained.folder, path, "--prefix", prefix).err.replace("▁", "")


def test_no_pairs_are_no_score(trained, run, tmp_path):
    (tmp_path / "header.tsv").write_text("source\ttarget\n")
    result = run("score", trained.folder, tmp_path / "header.tsv", "--columns", "source,target")
    assert result.code == 3 and "no rows below it" in result.err


def test_selfcheck_wants_something_to_check(trained, run, tmp_path):
    result = run("selfcheck", trained.folder, lines_file(tmp_path, "\n  \n"))
    assert result.code == 3 and "no line holds a symbol" in result.err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.predict("one"), "lines is one text, 'one'; a list of texts"),
        (lambda m: m.predict(None), "lines is None; a list of texts"),
        (lambda m: m.predict(["one", None]), r"lines\[1\] is None"),
        (lambda m: m.predict(["one"], batch=-1), "batch is -1; a whole number of at least 1"),
        (lambda m: m.predict(["one"], batch=0), "batch is 0"),
        (lambda m: m.predict(["one"], beam="x"), "beam is of type str"),
        (lambda m: m.explain(None), "line is None"),
        (lambda m: m.explain("one", target=3), "target is of type int"),
        (lambda m: m.evaluate(["one"], [None]), r"references\[0\] is None"),
        (lambda m: m.evaluate(["one"], []), "1 sources and 0 references"),
        (lambda m: m.score("ab", "cd"), "sources is one text"),
        (lambda m: m.score(["one"], []), "1 sources and 0 targets"),
        (lambda m: m.align(["one", "two"], ["un"]), "2 sources and 1 targets"),
        (lambda m: m.save(None), "folder is None; a path"),
        (lambda m: type(m).load(None), "folder is None; a path"),
    ],
)
def test_wrong_arguments_from_python_are_sentences(trained, call, said):
    import unrolled
    from unrolled.base.errors import UsageError

    with pytest.raises(UsageError, match=said):
        call(unrolled.load(str(trained.folder)))


def test_lines_may_come_from_anything_that_gives_texts(trained):
    import unrolled

    model = unrolled.load(str(trained.folder))
    assert model.predict(line for line in ("one red cat", "")) == ["un rouge chat", ""]
