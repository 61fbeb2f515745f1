"""eole: its model, its loss, its optimiser and its batch processor; its translator decodes."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import eole
import pyonmttok
import torch
from eole.config.data import Dataset
from eole.config.models import RnnModelConfig
from eole.config.run import TrainConfig
from eole.constants import DefaultTokens
from eole.models.model import get_model_class
from eole.predict.beam_search import GNMTGlobalScorer
from eole.predict.translator import Translator
from eole.trainer import BatchProcessor
from eole.utils.loss import LossCompute
from eole.utils.optimizers import Optimizer
from eole.utils.statistics import Statistics
from work import DROPOUT, EMBEDDING, HIDDEN, WORDS, padded, tell, work

SPECIALS = [DefaultTokens.UNK, DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS]
PAD, BOS, EOS = 1, 2, 3

asked = work()
torch.set_num_threads(1)
torch.manual_seed(1)
counts = Counter({f"w{word}": 10**6 - word for word in range(asked.words)})


def vocabulary() -> object:
    return pyonmttok.build_vocab_from_tokens(counts, maximum_size=0, minimum_frequency=1, special_tokens=SPECIALS)


vocabularies = {
    "src": vocabulary(),
    "tgt": vocabulary(),
    "specials": dict(zip(("unk_token", "pad_token", "bos_token", "eos_token"), SPECIALS, strict=True)),
    "decoder_start_token": DefaultTokens.BOS,
}
config = TrainConfig(
    data={"corpus": Dataset(path_src=__file__, path_tgt=__file__)},
    src_vocab="none",
    tgt_vocab="none",
    model=RnnModelConfig(
        embeddings={"word_vec_size": EMBEDDING},
        encoder={"encoder_type": "brnn", "hidden_size": HIDDEN, "layers": 1, "rnn_type": "LSTM"},
        decoder={"layers": 1, "hidden_size": HIDDEN, "rnn_type": "LSTM", "global_attention": "general"},
        input_feed=asked.feeding,
        hidden_size=HIDDEN,
        layers=1,
    ),
    training={
        "dropout": [DROPOUT],
        "optim": "adam",
        "learning_rate": 1e-4,
        "max_grad_norm": 1.0,
        "compute_dtype": {"float32": "fp32", "bfloat16": "bf16"}[asked.precision],
        "world_size": 1,
        "gpu_ranks": [],
    },
)
config.model.encoder.encoder_type = "brnn"
config.model.decoder.bidirectional_encoder = True
network = get_model_class(config.model).for_training(config.model, vocabularies, config.training, device_id=-1)
optimizer = Optimizer.from_config(network, config)
processor = BatchProcessor(
    network,
    LossCompute.from_config(config, network, vocabularies),
    optimizer,
    n_gpu=0,
    parallel_mode="data_parallel",
    with_align=False,
    zero_out_prompt_loss=False,
    estim_loss_lambda=0.0,
    accum_count=1,
)
statistics = Statistics()


def side(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor(padded(rows, PAD))


def update(batch: tuple[list[list[int]], list[list[int]]]) -> None:
    sources, targets = ([[word + 4 for word in row] for row in side] for side in batch)
    given = {
        "src": side(sources),
        "srclen": torch.tensor([len(row) for row in sources]),
        "tgt": side([[BOS, *row, EOS] for row in targets]),
        "images": None,
        "prefix_len": None,
        "cid": ["corpus"] * len(sources),
        "cid_line_number": list(range(len(sources))),
    }
    network.train()
    optimizer.zero_grad(set_to_none=True)
    count = sum(len(row) + 1 for row in targets)
    processor.process_batch(given, count, 1, statistics, statistics)
    optimizer.step()


def translator(beam: int) -> Translator:
    rules = SimpleNamespace(
        transforms=[],
        optional_eos=[],
        dynamic_shapes=None,
        n_best=1,
        min_length=WORDS,
        max_length=WORDS,
        max_length_ratio=0,
        context_length=0,
        beam_size=beam,
        temperature=1.0,
        top_k=1 if beam == 1 else 0,
        top_p=0.0,
        ban_unk_token=False,
        ratio=-0.0,
        stepwise_penalty=False,
        dump_beam="",
        block_ngram_repeat=0,
        ignore_when_blocking=[],
        replace_unk=False,
        tgt_file_prefix=False,
        phrase_table="",
        data_type="text",
        verbose=False,
        report_time=False,
        report_align=False,
        gold_align=False,
        seed=1,
        with_score=False,
        estim_only=False,
        self_attn_backend="pytorch",
        fuse_kvq=False,
        fuse_gate=False,
    )
    scorer = GNMTGlobalScorer(0.0, 0.0, "none", "none")
    return Translator(network, vocabularies, rules, config.model, device_id=-1, global_scorer=scorer)


translators = {beam: translator(beam) for beam in (1, 5)}


def decode(sentences: list[list[int]], beam: int) -> None:
    network.eval()
    given = {
        "src": side([[word + 4 for word in row] for row in sentences]),
        "srclen": torch.tensor([len(row) for row in sentences]),
        "ind_in_bucket": list(range(len(sentences))),
    }
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=asked.precision == "bfloat16"):
        found = translators[beam].predict_batch(given, False)["predictions"]
    if any(len(best[0]) < WORDS for best in found):
        raise RuntimeError("eole's search ended early")


version = f"{getattr(eole, '__version__', '')} on torch {torch.__version__}"
tell(
    asked,
    version,
    f"{asked.precision}; brnn, global_attention general",
    update,
    decode,
)
