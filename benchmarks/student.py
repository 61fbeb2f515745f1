"""The script that everybody writes: attention, cell and output product inside one Python loop over the target, float32.

After PyTorch's own tutorial "Translation with a sequence to sequence network and attention", batched and with padding
left out of attention and loss. Kept as the thing to be faster than; the models are those of `benchmarks.training`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class AdditiveAttention(nn.Module):
    def __init__(self, query_size: int, memory_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, size, bias=False)
        self.keys = nn.Linear(memory_size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + self.keys(memory))).squeeze(2)
        weights = functional.softmax(scores.masked_fill(~mask, float("-inf")), dim=1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1)


class BilinearAttention(nn.Module):
    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.keys = nn.Linear(memory_size, query_size, bias=False)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        scores = torch.bmm(self.keys(memory), query.unsqueeze(2)).squeeze(2)
        weights = functional.softmax(scores.masked_fill(~mask, float("-inf")), dim=1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1)


class Bahdanau(nn.Module):
    """BiGRU encoder; the last state asks, the context goes into the GRU cell."""

    def __init__(self, vocabulary: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(vocabulary, embedding_size, padding_idx=0)
        self.target_embedding = nn.Embedding(vocabulary, embedding_size, padding_idx=0)
        self.encoder = nn.GRU(embedding_size, hidden_size, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden_size, hidden_size)
        self.attention = AdditiveAttention(hidden_size, 2 * hidden_size, hidden_size)
        self.cell = nn.GRUCell(embedding_size + 2 * hidden_size, hidden_size)
        self.readout = nn.Linear(hidden_size + 2 * hidden_size + embedding_size, hidden_size)
        self.output = nn.Linear(hidden_size, vocabulary)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        lengths = source_mask.sum(dim=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.source_embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        memory, last = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True)
        hidden = torch.tanh(self.bridge(torch.cat((last[0], last[1]), dim=1)))
        logits = []
        for step in range(target.shape[1] - 1):
            embedded = self.target_embedding(target[:, step])
            context = self.attention(hidden, memory, source_mask)
            hidden = self.cell(torch.cat((embedded, context), dim=1), hidden)
            mixed = torch.tanh(self.readout(torch.cat((hidden, context, embedded), dim=1)))
            logits.append(self.output(mixed))
        return torch.stack(logits, dim=1)


class Luong(nn.Module):
    """LSTM encoder; the new state asks, and state and context make the output. No input feeding."""

    def __init__(self, vocabulary: int, embedding_size: int, hidden_size: int, layers: int) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(vocabulary, embedding_size, padding_idx=0)
        self.target_embedding = nn.Embedding(vocabulary, embedding_size, padding_idx=0)
        self.encoder = nn.LSTM(embedding_size, hidden_size, num_layers=layers, batch_first=True)
        self.cells = nn.ModuleList(
            nn.LSTMCell(hidden_size if layer else embedding_size, hidden_size) for layer in range(layers)
        )
        self.attention = BilinearAttention(hidden_size, hidden_size)
        self.readout = nn.Linear(2 * hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, vocabulary)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        lengths = source_mask.sum(dim=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.source_embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        memory, last = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True)
        states = [(hidden, cell) for hidden, cell in zip(*last, strict=True)]
        logits = []
        for step in range(target.shape[1] - 1):
            output = self.target_embedding(target[:, step])
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(output, states[layer])
                output = states[layer][0]
            context = self.attention(output, memory, source_mask)
            mixed = torch.tanh(self.readout(torch.cat((output, context), dim=1)))
            logits.append(self.output(mixed))
        return torch.stack(logits, dim=1)


def loss(model: nn.Module, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy over real symbols, padding ignored."""
    logits = model(source, source_mask, target)
    return functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
