"""Forward passes against plain loops written from the equations of Mathur et al. (2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tertium.encoders.encoder_network import SkipInit
from tertium.encoders.transformer_layer import TransformerLayer
from tertium.metrics.heads.config import HeadConfig
from tertium.metrics.heads.networks import (
    NETWORKS,
    BidirectionalLSTM,
    PaddedSequences,
    PairNetwork,
    SequenceDropout,
    cross_attention,
    max_pool,
    mean_pool,
)

CONFIG = HeadConfig(hidden=4)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def torch_lstm(module: BidirectionalLSTM, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Compute the states of padded texts with torch's own LSTM of the same weights."""
    packed = nn.utils.rnn.pack_padded_sequence(
        x, torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    return nn.utils.rnn.pad_packed_sequence(module.lstm(packed)[0], batch_first=True)[0]


def lstm_loop(module: BidirectionalLSTM, x: np.ndarray) -> np.ndarray:
    """A bidirectional LSTM over (tokens, d)."""
    with torch.inference_mode():
        states = torch_lstm(module, torch.tensor(x, dtype=torch.float32)[None], [len(x)])
    return states[0].double().numpy()


def mix_loop(network: PairNetwork, states: np.ndarray) -> np.ndarray:
    shares = softmax(network.mix.weights.detach().double().numpy())
    gamma = network.mix.gamma.item()
    return gamma * sum(shares[k] * states[:, k] for k in range(len(shares)))


def pooled(h: np.ndarray) -> np.ndarray:
    return np.concatenate([h.mean(axis=0), h.max(axis=0)])


def matched(network: PairNetwork, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = np.abs(a - b) if network.absolute else a - b
    return np.concatenate([a, b, a * b, difference], axis=-1)


def attended(t: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    t_new = np.array([sum(softmax(r @ t_i)[j] * r[j] for j in range(len(r))) for t_i in t])
    r_new = np.array([sum(softmax(t @ r_j)[i] * t[i] for i in range(len(t))) for r_j in r])
    return t_new, r_new


def score_loop(name: str, network: PairNetwork, t: np.ndarray, r: np.ndarray) -> float:
    """One score from frozen states (tokens, layers, d) of hypothesis and reference."""
    ht, hr = (lstm_loop(network.encoder, mix_loop(network, side)) for side in (t, r))
    if name == "bilstm":
        p = matched(network, pooled(ht), pooled(hr))
    else:
        at, ar = attended(ht, hr)
        if name == "bilstm-attention":
            p = matched(network, pooled(at), pooled(ar))
        else:
            f = network.project.weight.detach().double().numpy()
            b = network.project.bias.detach().double().numpy()
            parts = []
            for own, attended_states in ((hr, ar), (ht, at)):
                projected = np.maximum(matched(network, own, attended_states) @ f.T + b, 0)
                parts.append(pooled(lstm_loop(network.compose, projected)))
            p = np.concatenate(parts)
    first, second = network.regressor.layers[1], network.regressor.layers[4]
    inner = np.maximum(first.weight.detach().double().numpy() @ p + first.bias.detach().numpy(), 0)
    raw = float((second.weight.detach().double().numpy() @ inner + second.bias.detach().numpy())[0])
    return raw * float(network.regressor.spread) + float(network.regressor.centre)


@pytest.fixture(params=sorted(NETWORKS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def make(name: str, sides: int = 1, absolute: bool = False) -> PairNetwork:
    torch.manual_seed(3)
    config = HeadConfig(
        hidden=4,
        against="both" if sides > 1 else "reference",
        difference="absolute" if absolute else "signed",
    )
    network = NETWORKS[name](config, 3, 5)
    with torch.no_grad():
        for parameter in network.parameters():  # no default value may hide an error
            parameter.add_(0.4 * torch.randn_like(parameter))
        network.regressor.centre.fill_(0.7)
        network.regressor.spread.fill_(1.9)
    return network.eval()


def texts(lengths: list[int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 3, 5)) for n in lengths]


def padded(states: list[np.ndarray], fill: float = 0.0) -> PaddedSequences:
    width = max(1, *(len(s) for s in states))
    values = np.full((len(states), width, 3, 5), fill)
    for row, s in enumerate(states):
        values[row, : len(s)] = s
    return PaddedSequences(
        torch.tensor(values, dtype=torch.float32), torch.tensor([len(s) for s in states])
    )


@pytest.mark.parametrize("absolute", [False, True])
def test_forward_equals_the_equations(name: str, absolute: bool) -> None:
    network = make(name, absolute=absolute)
    hypotheses, references = texts([4, 1, 6]), texts([5, 3, 2], seed=1)
    with torch.inference_mode():
        result = network.score(
            network.encode(padded(hypotheses)), [network.encode(padded(references))]
        )
    for score, t, r in zip(result.tolist(), hypotheses, references, strict=True):
        assert score == pytest.approx(score_loop(name, network, t, r), abs=2e-6)


def test_padding_never_changes_a_score(name: str) -> None:
    network = make(name)
    hypotheses, references = texts([4, 1, 6, 9]), texts([5, 3, 2, 1], seed=1)
    with torch.inference_mode():
        filled = padded(hypotheses, fill=1e4), padded(references, fill=-1e4)
        together = network.score(network.encode(filled[0]), [network.encode(filled[1])])
        alone = [
            float(network.score(network.encode(padded([t])), [network.encode(padded([r]))]))
            for t, r in zip(hypotheses, references, strict=True)
        ]
    assert together.tolist() == pytest.approx(alone, abs=1e-6)


def test_an_empty_side_has_a_finite_score_and_gradient(name: str) -> None:
    network = make(name).train()
    sides = padded(texts([0, 3])), padded(texts([2, 0], seed=1))
    scores = network.score(network.encode(sides[0]), [network.encode(sides[1])])
    scores.sum().backward()
    assert torch.isfinite(scores).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())


def test_two_sides_are_regressed_on_together(name: str) -> None:
    network = make(name, sides=2)
    t, r, s = (network.encode(padded(texts([4, 2], seed=n))) for n in range(3))
    with torch.inference_mode():
        both = network.score(t, [r, s])
        joined = torch.cat([network.represent(t, r), network.represent(t, s)], dim=-1)
        assert torch.equal(both, network.regressor(joined))
        assert not torch.allclose(both, network.score(t, [s, r]))


def test_the_encoders_vectors_have_a_dropout_of_their_own(name: str) -> None:
    assert NETWORKS[name](CONFIG, 3, 5).input_dropout.rate == 0.5
    network = NETWORKS[name](replace(CONFIG, input_dropout=0.0), 3, 5).train()
    read = [network.encode(padded(texts([4, 2]))).values for _ in range(2)]
    assert torch.equal(*read)
    rates = {m.p for m in network.regressor.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.5}


def test_published_sizes() -> None:
    """Hidden 300 in each direction, projected back to 300 (appendix A, after Chen et al. 2017)."""
    network = NETWORKS["esim"](HeadConfig(), 13, 768)
    assert network.encoder.lstm.hidden_size == network.compose.lstm.hidden_size == 300
    assert network.project.weight.shape == (300, 2400)
    assert network.regressor.layers[1].weight.shape == (300, 2400)
    assert NETWORKS["bilstm"](HeadConfig(), 1, 8).regressor.layers[1].in_features == 4800


def test_sequence_dropout_hides_the_same_dimensions_of_every_token() -> None:
    torch.manual_seed(0)
    out = SequenceDropout(0.5)(torch.ones(3, 7, 40))
    assert (out == out[:, :1]).all()
    assert set(out.unique().tolist()) == {0.0, 2.0}
    assert (SequenceDropout(0.5).eval()(torch.ones(1, 2, 3)) == 1).all()


def test_attention_to_an_empty_text_is_zero() -> None:
    left = PaddedSequences(torch.randn(1, 2, 3), torch.tensor([2]))
    right = PaddedSequences(torch.randn(1, 1, 3), torch.tensor([0]))
    attended_states, _ = cross_attention(left, right)
    assert (attended_states.values == 0).all()
    assert (mean_pool(right) == 0).all()
    assert (max_pool(right) == 0).all()


class Names(TorchFunctionMode):
    """Notes every function of torch that is called inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(func.__name__)
        return func(*args, **(kwargs or {}))


MAKERS: dict[str, Callable[[], torch.nn.Module]] = {
    **{name: partial(network, CONFIG, 3, 5) for name, network in NETWORKS.items()},
    "layer": partial(TransformerLayer, 8, 2, 16, 1e-5),
}


@pytest.mark.parametrize("name", MAKERS)
def test_loading_draws_no_random_numbers(name: str) -> None:
    """Older versions of torch load their compiler to draw numbers without memory."""
    drawn = ("uniform_", "normal_", "orthogonal_", "linalg_qr")
    with Names() as usual:
        MAKERS[name]()
    with Names() as loaded, SkipInit():
        MAKERS[name]()
    assert any(called.endswith(drawn) for called in usual.names)
    assert not [called for called in loaded.names if called.endswith(drawn)]
