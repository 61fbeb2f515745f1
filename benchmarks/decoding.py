"""Sentences a second of a beam search: in batches beside one by one, weights laid out beside as they are, bfloat16.

    python -m benchmarks.decoding --json

One thread, in seconds of the processor. A GRU encoder and decoder with additive attention, 512 units, 8,000
symbols, random weights; 1,000 sentences of 11 to 17 symbols, each output as long as its source; beam 5.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

from benchmarks.training import EMBEDDING, LENGTHS, MODELS, VOCABULARY
from unrolled.models import Seq2Seq, TorchStepper
from unrolled.search import Hypothesis, SearchSettings, decode

SENTENCES, BATCH, BEAM, DEMANDED = 1000, 64, 5, 5.0


def run(stepper: TorchStepper, sentences: list[list[int]], batch: int) -> tuple[list[Hypothesis], float]:
    """The best hypothesis of each sentence, and the seconds that all took; neighbours in length share a batch."""
    settings = SearchSettings(kind="beam", beam=BEAM, max_length_ratio=1.0, max_length_constant=0)
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    best: dict[int, Hypothesis] = {}
    start = time.process_time()
    for first in range(0, len(order), batch):
        places = order[first : first + batch]
        longest = max(len(sentences[place]) for place in places)
        ids = np.array([sentences[place] + [0] * (longest - len(sentences[place])) for place in places])
        for place, found in zip(places, decode(stepper, ids, ids != 0, settings), strict=True):
            best[place] = found[0]
    return [best[place] for place in range(len(sentences))], time.process_time() - start


def measure(alone: int) -> dict[str, Any]:
    torch.manual_seed(1)
    model = Seq2Seq(VOCABULARY, VOCABULARY, embedding_size=EMBEDDING, **MODELS["bahdanau"])
    plain, stepper = TorchStepper(model), TorchStepper(model, trained=True)
    half = TorchStepper(model, precision="bfloat16")
    random = np.random.default_rng(2)
    sentences = [random.integers(4, VOCABULARY, size).tolist() for size in random.integers(*LENGTHS, SENTENCES)]
    some = sentences[:alone]
    for each in (plain, stepper, half):
        run(each, some[:4], 1)
    together, seconds = run(stepper, sentences, BATCH)
    singly, seconds_alone = run(stepper, some, 1)
    seconds_half, seconds_half_alone = run(half, sentences, BATCH)[1], run(half, some, 1)[1]
    seconds_plain, seconds_plain_alone = run(plain, sentences, BATCH)[1], run(plain, some, 1)[1]
    rates = SENTENCES / seconds, alone / seconds_alone
    same = sum(one.ids == other.ids for one, other in zip(together, singly, strict=False))
    return {
        "benchmark": "decoding",
        "torch": torch.__version__,
        "sentences_per_second_in_batches": round(rates[0], 1),
        "sentences_per_second_alone": round(rates[1], 1),
        "ratio": round(rates[0] / rates[1], 2),
        "demanded": DEMANDED,
        "same_output": f"{same} of {alone}",
        "laid_out_ratio_in_batches": round(seconds_plain / seconds, 2),
        "laid_out_ratio_alone": round(seconds_plain_alone / seconds_alone, 2),
        "bfloat16_ratio_in_batches": round(seconds / seconds_half, 2),
        "bfloat16_ratio_alone": round(seconds_alone / seconds_half_alone, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--alone", type=int, default=SENTENCES, help="sentences that are also searched one by one")
    options = parser.parse_args()
    torch.set_num_threads(1)
    result = measure(options.alone)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:36}{value}")


if __name__ == "__main__":
    main()
