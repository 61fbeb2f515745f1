"""The conditional random field against the sum over every labelling, written out."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unrolled.base.errors import UsageError
from unrolled.layers.crf import ConditionalRandomField, Legal

LABELS = 3


def made(legal: Legal | None = None, seed: int = 0) -> ConditionalRandomField:
    torch.manual_seed(seed)
    crf = ConditionalRandomField(LABELS, legal=legal).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def bio() -> Legal:
    """O, B, I: I neither begins a row nor follows O."""
    follow = torch.ones(LABELS, LABELS, dtype=torch.bool)
    follow[0, 2] = False
    return Legal(torch.tensor([True, True, False]), follow, torch.ones(LABELS, dtype=torch.bool))


def every(crf: ConditionalRandomField, scores: Tensor) -> dict[tuple[int, ...], Tensor]:
    """The score of each legal labelling of one row [time, label], by the definition."""
    found = {}
    for path in product(range(LABELS), repeat=len(scores)):
        steps = list(pairwise(path))
        if crf.may_start[path[0]] and crf.may_end[path[-1]] and all(crf.may_follow[a, b] for a, b in steps):
            score = crf.start[path[0]] + crf.end[path[-1]]
            score = score + sum(scores[t, label] for t, label in enumerate(path))
            found[path] = score + sum(crf.follow[a, b] for a, b in steps)
    return found


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3), seed=st.integers(0, 99), hard=st.booleans())
def test_it_is_the_sum_over_every_labelling(lengths: list[int], seed: int, hard: bool) -> None:
    crf = made(bio() if hard else None, seed)
    mask = mask_of(lengths)
    scores = torch.randn(*mask.shape, LABELS, dtype=torch.float64)
    partition, path, marginals = crf.log_partition(scores, mask), crf.decode(scores, mask), crf.marginals(scores, mask)
    for row, length in enumerate(lengths):
        paths = every(crf, scores[row, :length])
        weights = torch.stack(list(paths.values()))
        assert partition[row].item() == pytest.approx(weights.logsumexp(0).item())
        best = max(paths, key=lambda labels: paths[labels].item())
        assert path.labels[row].tolist() == [*best, *[0] * (mask.shape[1] - length)]
        assert path.score[row].item() == pytest.approx(paths[best].item())
        expected = torch.zeros(mask.shape[1], LABELS, dtype=torch.float64)
        for labels, weight in zip(paths, weights.softmax(0), strict=True):
            for step, label in enumerate(labels):
                expected[step, label] += weight.detach()
        torch.testing.assert_close(marginals[row].detach(), expected)
        gold = torch.zeros(mask.shape, dtype=torch.int64)
        gold[row, :length] = torch.tensor(best)
        found = crf(scores[row : row + 1], gold[row : row + 1], mask[row : row + 1])
        assert found.item() == pytest.approx((paths[best] - weights.logsumexp(0)).item())


def test_gradients_are_those_of_the_sum_over_every_labelling() -> None:
    crf, mask = made(bio()), mask_of([4])
    scores = torch.randn(1, 4, LABELS, dtype=torch.float64, requires_grad=True)
    parameters = [scores, *crf.parameters()]
    found = torch.autograd.grad(crf(scores, torch.tensor([[1, 2, 0, 1]]), mask).sum(), parameters)
    paths = every(crf, scores[0])
    loss = paths[1, 2, 0, 1] - torch.stack(list(paths.values())).logsumexp(0)
    for gradient, expected in zip(found, torch.autograd.grad(loss, parameters), strict=True):
        torch.testing.assert_close(gradient, expected)


def test_gradcheck() -> None:
    crf, mask = made(), mask_of([5, 2])
    scores = torch.randn(2, 5, LABELS, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(LABELS, (2, 5))
    assert torch.autograd.gradcheck(lambda x: crf(x, labels, mask), [scores])
    assert torch.autograd.gradcheck(lambda x: crf.marginals(x, mask), [scores])


def test_what_stands_in_padding_changes_nothing() -> None:
    crf, mask = made(), mask_of([5, 2])
    scores, labels = torch.randn(2, 5, LABELS, dtype=torch.float64), torch.randint(LABELS, (2, 5))
    changed, other = scores.clone(), labels.clone()
    changed[1, 2:], other[1, 2:] = 1e6, -100
    torch.testing.assert_close(crf(changed, other, mask), crf(scores, labels, mask))
    torch.testing.assert_close(crf.marginals(changed, mask), crf.marginals(scores, mask))
    assert crf.decode(changed, mask).labels.equal(crf.decode(scores, mask).labels)


def test_what_is_wrong_is_said() -> None:
    crf, mask = made(bio()), mask_of([2])
    scores = torch.randn(1, 2, LABELS, dtype=torch.float64)
    with pytest.raises(UsageError, match="row 0 holds a transition that 'legal' forbids"):
        crf(scores, torch.tensor([[0, 2]]), mask)
    with pytest.raises(UsageError, match="labels must be 0 to 2; found 0 to 3"):
        crf(scores, torch.tensor([[0, 3]]), mask)
    with pytest.raises(UsageError, match="each row must be True in its first positions"):
        crf.decode(scores, torch.tensor([[False, True]]))
    with pytest.raises(UsageError, match=r"mask is \[1, 3\]; for these scores it must be \[1, 2\]"):
        crf.marginals(scores, mask_of([3]))
    with pytest.raises(UsageError, match=r"legal.end is torch.bool \[2\]; for 3 labels it must be bool \[3\]"):
        ConditionalRandomField(3, legal=bio()._replace(end=torch.ones(2, dtype=torch.bool)))
