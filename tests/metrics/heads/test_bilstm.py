"""Our LSTM against torch's own, values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tertium.metrics.heads.networks import BidirectionalLSTM, PaddedSequences


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
