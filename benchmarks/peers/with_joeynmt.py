"""JoeyNMT: its model, its loss, its optimiser; its `search` decodes. On a CPU it has float32 only."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_gradient_clipper, build_optimizer
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from work import DROPOUT, EMBEDDING, ENCODER, HIDDEN, WORDS, padded, tell, work

UNK, PAD, BOS, EOS = range(4)

asked = work()
if asked.precision != "float32":
    raise SystemExit("JoeyNMT turns half precision off on a CPU")
torch.set_num_threads(1)
torch.manual_seed(1)
symbols = SimpleNamespace(
    unk_token="<unk>",
    pad_token="<pad>",
    bos_token="<s>",
    eos_token="</s>",
    sep_token=None,
    unk_id=UNK,
    pad_id=PAD,
    bos_id=BOS,
    eos_id=EOS,
    sep_id=None,
    lang_tags=[],
)
words = [f"w{word}" for word in range(asked.words)]
embeddings = {"embedding_dim": EMBEDDING, "dropout": DROPOUT}
network = build_model(
    {
        "initializer": "xavier_uniform",
        "encoder": {
            "type": "recurrent",
            "rnn_type": "lstm",
            "embeddings": embeddings,
            "hidden_size": ENCODER,
            "bidirectional": True,
            "num_layers": 1,
            "dropout": DROPOUT,
        },
        "decoder": {
            "type": "recurrent",
            "rnn_type": "lstm",
            "embeddings": embeddings,
            "hidden_size": HIDDEN,
            "num_layers": 1,
            "dropout": DROPOUT,
            "hidden_dropout": DROPOUT,
            "init_hidden": "bridge",
            "attention": "luong",
            "input_feeding": asked.feeding,
        },
    },
    Vocabulary(words, symbols),
    Vocabulary(words, symbols),
)
network.loss_function = ("crossentropy", 0.0)
optimizer = build_optimizer({"optimizer": "adam", "learning_rate": 1e-4}, network.parameters())
clip = build_gradient_clipper({"clip_grad_norm": 1.0, "clip_grad_val": None})


def batch_of(sources: list[list[int]], targets: list[list[int]] | None) -> Batch:
    rows = [[*(word + 4 for word in row), EOS] for row in sources]
    target = None
    if targets is not None:
        target = torch.tensor(padded([[BOS, *(word + 4 for word in row), EOS] for row in targets], PAD))
    return Batch(
        src=torch.tensor(padded(rows, PAD)),
        src_length=torch.tensor([len(row) for row in rows]),
        src_prompt_mask=None,
        trg=target,
        trg_prompt_mask=None,
        indices=torch.arange(len(rows)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=EOS,
        is_train=targets is not None,
    )


def update(pairs: tuple[list[list[int]], list[list[int]]]) -> None:
    network.train()
    batch = batch_of(*pairs)
    batch.sort_by_src_length()
    loss, _, _, _ = network(return_type="loss", **vars(batch))
    batch.normalize(loss, normalization="tokens").backward()
    clip(parameters=network.parameters())
    optimizer.step()
    network.zero_grad()


def decode(sentences: list[list[int]], beam: int) -> None:
    network.eval()
    batch = batch_of(sentences, None)
    output, _, _ = search(
        network, batch, max_output_length=WORDS, beam_size=beam, beam_alpha=-1, min_output_length=WORDS
    )
    if output.shape[1] < WORDS:
        raise RuntimeError("JoeyNMT's search ended early")


tell(asked, f"{version('joeynmt')} on torch {torch.__version__}", "float32; attention luong", update, decode)
