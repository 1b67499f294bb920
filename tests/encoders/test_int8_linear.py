"""Integer products: exact with every operator, independent of the other rows, close to fp32."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tertium.core.errors import UsageError  # noqa: E402
from tertium.core.runtime import runtime  # noqa: E402
from tertium.encoders import int8_linear, load_encoder  # noqa: E402
from tertium.encoders.batching import map_on_threads  # noqa: E402
from tertium.encoders.int8_linear import (  # noqa: E402
    Int8Linear,
    Operator,
    check_int8_widths,
    multiply_fp32_slices,
    multiply_int8,
)

WIDTHS = [(64, 96), (384, 1536), (1536, 384), (3072, 768), (2951, 32)]
TEXTS = [f"the cat number {n} sat on {n} mats" + " and slept" * (n % 9) for n in range(40)]


def make_layer(inputs: int, outputs: int, *, fine: bool = False) -> tuple[Int8Linear, Any]:
    torch.manual_seed(inputs)
    linear = torch.nn.Linear(inputs, outputs)
    return Int8Linear.quantize(linear, fine=fine), linear


@pytest.mark.parametrize(("inputs", "outputs"), WIDTHS)
def test_operators_are_exact(inputs: int, outputs: int) -> None:
    layer, _ = make_layer(inputs, outputs)
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(-127, 128, (70, inputs), dtype=torch.int8, generator=generator)
    x[0], layer.weight[0] = -128, -127  # the largest possible sum
    expected = (x.long() @ layer.weight.long().T).float()
    operators: list[Operator] = [multiply_fp32_slices]
    if int8_linear.cpu_has_int8():
        operators.append(multiply_int8)
    for operator in operators:
        assert torch.equal(operator(layer, x, torch.empty(70, outputs)), expected)


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize(("inputs", "outputs"), WIDTHS)
def test_rows_do_not_affect_each_other(inputs: int, outputs: int, fine: bool) -> None:
    layer, _ = make_layer(inputs, outputs, fine=fine)
    x = torch.randn(300, inputs)
    with torch.inference_mode():
        together = layer(x)
        for rows in ([0], [299], [5, 290, 17], list(range(100, 140))):
            assert torch.equal(layer(x[rows]), together[rows])


@pytest.mark.parametrize(("fine", "error"), [(False, 0.02), (True, 0.006)])
def test_values_are_close_to_fp32(fine: bool, error: float) -> None:
    layer, linear = make_layer(384, 1536, fine=fine)
    x = torch.randn(50, 384)
    with torch.inference_mode():
        difference = layer(x) - linear(x)
        assert difference.std() < error * linear(x).std()
        inner = layer.forward_gelu(x)
        torch.testing.assert_close(inner, torch.nn.functional.gelu(layer(x)))
        back, plain = make_layer(1536, 384)
        difference = back.contract_inner(inner.clone()) - plain(inner)
        assert difference.std() < 0.012 * plain(inner).std()


def test_unsupported_width_is_refused() -> None:
    check_int8_widths((384, 1536))
    with pytest.raises(UsageError, match="multiples of 32, not 40: use precision=fp32"):
        check_int8_widths((384, 40))


@pytest.mark.parametrize("name", ["minilm", "e5@6"])
def test_vectors_do_not_depend_on_the_batch(name: str) -> None:
    encoder = load_encoder(name, precision="int8")
    with runtime(cache=False, memory=0, threads=2):
        together = encoder.encode(TEXTS)
    with runtime(cache=False, memory=0, threads=1, batch_size=3):
        reverse = encoder.encode(TEXTS[::-1])
        alone = [encoder.encode([text]) for text in TEXTS[:5]]
    for n in range(len(TEXTS)):
        np.testing.assert_array_equal(
            together.token_vectors(n), reverse.token_vectors(len(TEXTS) - 1 - n)
        )
    np.testing.assert_array_equal(together.sentences, reverse.sentences[::-1])
    for n, single in enumerate(alone):
        np.testing.assert_array_equal(together.token_vectors(n), single.vectors)


def test_operators_give_equal_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    if not int8_linear.cpu_has_int8():
        pytest.skip("this CPU has no 8-bit instructions")
    encoder = load_encoder("minilm", precision="int8")
    with runtime(cache=False, memory=0):
        native = encoder.encode(TEXTS[:6])
        monkeypatch.setattr(int8_linear, "choose_operator", lambda _: multiply_fp32_slices)
        in_fp32 = encoder.encode(TEXTS[:6])
    np.testing.assert_array_equal(native.vectors, in_fp32.vectors)


def test_threads_of_the_host_keep_their_number_of_torch_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with runtime(threads=2):
            inside = list(map_on_threads(lambda _: torch.get_num_threads(), range(8)))
        assert inside == [1] * 8
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert seen == [3]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
