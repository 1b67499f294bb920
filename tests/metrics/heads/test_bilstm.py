"""Our LSTM against torch's own, values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tertium.metrics.heads import scoring
from tertium.metrics.heads.bilstm import BidirectionalLSTM, PaddedSequences
from tertium.metrics.heads.scoring import RecurrentSteps, make_product


@pytest.mark.parametrize("lengths", [[5, 3, 1, 3], [1], [7, 7]])
def test_values_and_gradients_equal_torchs(lengths: list[int]) -> None:
    torch.manual_seed(0)
    module = BidirectionalLSTM(6, 4)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    values = torch.randn(len(lengths), max(lengths), 6)
    weights = torch.randn(len(lengths), max(lengths), 8)
    result = []
    for own in (True, False):
        x = values.clone().requires_grad_()
        if own:
            states = module(PaddedSequences(x, torch.tensor(lengths))).values
        else:
            packed = nn.utils.rnn.pack_padded_sequence(
                x, torch.tensor(lengths), batch_first=True, enforce_sorted=False
            )
            states, _ = nn.utils.rnn.pad_packed_sequence(module.lstm(packed)[0], batch_first=True)
        module.zero_grad()
        (states * weights).sum().backward()
        result.append([states, x.grad, *(p.grad.clone() for p in module.parameters())])
    for ours, torchs in zip(*result, strict=True):
        torch.testing.assert_close(ours, torchs, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("lengths", [[5, 3, 0, 1, 3, 9, 2, 2, 2, 4], [1], [0], [7, 7]])
def test_batched_steps_equal_single_texts(lengths: list[int]) -> None:
    torch.manual_seed(0)
    module = BidirectionalLSTM(6, 4)
    flat = torch.randn(sum(lengths), 6)
    texts = torch.split(flat, lengths)
    with torch.inference_mode():
        steps = RecurrentSteps(module)
        for texts_per_step in (steps.texts_per_step, 1):  # 1: if the position matters
            steps.texts_per_step = texts_per_step
            result = torch.split(steps(flat, np.array(lengths)), lengths)
            for text, states in zip(texts, result, strict=True):
                assert torch.equal(states, steps(text, np.array([len(text)])))
                if len(text):
                    torchs = module.lstm(text[None])[0][0]
                    torch.testing.assert_close(states, torchs, atol=2e-6, rtol=1e-5)


def test_product_without_invariant_sizes_runs_text_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [torch.randn(n, 6) for n in (3, 40, 1)]
    lengths, weight = np.array([3, 40, 1]), torch.randn(4, 6)
    monkeypatch.setattr(scoring, "find_invariant_block_sizes", lambda *_: ())
    parts = torch.split(make_product(weight)(torch.cat(texts), lengths), lengths.tolist())
    for text, part in zip(texts, parts, strict=True):
        assert torch.equal(part, make_product(weight)(text, np.array([len(text)])))
        torch.testing.assert_close(part, text @ weight.T)
