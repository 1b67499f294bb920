"""Products in blocks equal a single product, and rows do not affect each other."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tertium.encoders.batch_invariance import (  # noqa: E402
    BLOCK_SIZES,
    BlockSizes,
    find_invariant_block_sizes,
    make_batch_invariant,
    multiply_in_blocks,
    multiply_text_by_text,
)


@pytest.mark.parametrize("sizes", [BLOCK_SIZES, BLOCK_SIZES[1:], BLOCK_SIZES[-1:]])
@pytest.mark.parametrize(("texts", "tokens"), [(1, 1), (3, 7), (5, 64), (16, 32), (9, 61)])
def test_blocks_equal_one_product(texts: int, tokens: int, sizes: BlockSizes) -> None:
    torch.manual_seed(1)
    layer, x = torch.nn.Linear(24, 10), torch.randn(texts, tokens, 24)
    found = multiply_in_blocks(layer, sizes)(x)
    assert found.shape == (texts, tokens, 10)
    # the order of addition may differ: fp32 sums of 24 values near 1
    assert torch.allclose(found, layer(x), atol=1e-5)


def test_a_layer_that_depends_on_row_positions_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = torch.nn.Linear(16, 16)

    def depend_on_position(x: Any) -> Any:
        result = layer(x)
        result[-1] += 1e-6  # as a kernel for the last rows would
        return result

    assert find_invariant_block_sizes(depend_on_position, 16) == ()
    model = torch.nn.Sequential(torch.nn.Linear(16, 16))
    monkeypatch.setattr(
        "tertium.encoders.batch_invariance.find_invariant_block_sizes", lambda *_: ()
    )
    make_batch_invariant(model)
    assert model[0].forward.__qualname__.startswith(multiply_text_by_text.__name__)


def test_a_block_size_that_rarely_rounds_differently_is_excluded() -> None:
    """As AMX in bf16, where one of 6,000 results differs in products of 32 rows."""
    torch.manual_seed(3)
    layer = torch.nn.Linear(64, 384)

    def differ_rarely(x: Any) -> Any:
        product = layer(x)
        chosen = (product * 2**20).long() % 6000 == 0
        return torch.where(chosen, product * 1.01, product) if len(x) == BLOCK_SIZES[0] else product

    all_sizes = find_invariant_block_sizes(layer, 64)
    assert find_invariant_block_sizes(differ_rarely, 64) == tuple(
        size for size in all_sizes if size != BLOCK_SIZES[0]
    )


def test_rows_do_not_affect_each_other() -> None:
    torch.manual_seed(2)
    torch.set_num_threads(1)
    layer = torch.nn.Linear(384, 384)
    sizes = find_invariant_block_sizes(layer, 384)
    if not sizes:
        pytest.skip("products depend on row positions on this CPU: texts are multiplied one by one")
    x = torch.randn(BLOCK_SIZES[-1] + BLOCK_SIZES[0] + 3, 384)
    with torch.inference_mode():
        together = multiply_in_blocks(layer, sizes)(x[None])[0]
        for row in (0, 31, BLOCK_SIZES[-1], len(x) - 1):
            alone = multiply_in_blocks(layer, sizes)(x[None, row : row + 1])[0, 0]
            assert torch.equal(alone, together[row])
