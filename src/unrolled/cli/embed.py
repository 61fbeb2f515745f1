"""``unrolled embed``: the vectors of a model's words, of each line of a file, or of each word of its lines."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli import options


def embed(
    model: options.Model,
    file: Annotated[
        str | None,
        typer.Argument(help="Lines to read, - for standard input; none: the vectors of the words themselves."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="Words: .txt, .vec (word2vec), .bin (its binary form), .glove, also .gz. Lines: .npz, .tsv; with "
            "contextual vectors .npz, .jsonl."
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Words: word2vec, binary or glove, whatever the file is called.")
    ] = None,
    side: Annotated[
        str | None, typer.Option(help="Words: of which column, e.g. target; the first if not given.")
    ] = None,
    layer: Annotated[
        str | None, typer.Option(help="Contextual vectors: mean (the usual), all, or a layer's number, 0 the lowest.")
    ] = None,
    as_json: options.Json = False,
    device: options.Device = "auto",
) -> None:
    """Write vectors: of the words that a model knows, or of each line of a file, as the model reads it.

    A model of contextual vectors writes one for each word of each line.

    Without --to they are printed, words in GloVe's format, lines with tabs.
    """
    from unrolled.cli.output import tell, tell_json
    from unrolled.pipeline import load
    from unrolled.progress import say

    given = {"to": to, "kind": kind, "side": side, "layer": layer}
    show, chosen = load(model, device=device).showing("embed", given)
    for one in show(file, **chosen):
        if as_json:
            tell_json(one.tree)
        elif one.text:
            tell(one.text)
        for remark in one.remarks:
            say(remark)
