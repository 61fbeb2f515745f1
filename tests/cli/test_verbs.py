"""Every verb on one small model: what it prints, what it writes, which exit code it leaves with."""

import json
import math

import numpy as np
import pytest


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
