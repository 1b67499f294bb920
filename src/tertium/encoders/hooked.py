"""Any other encoder, run by transformers, and only as deep as it is asked to.

The layers are found as the list of modules whose outputs are the model's own hidden states (tried
on a short input when the model is loaded). Hooks on them keep what is wanted and stop the forward
pass behind the deepest layer that is needed. A model whose layers cannot be found runs whole.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tertium.encoders.apart import take_apart
from tertium.encoders.products import arithmetic, lower_precision
from tertium.encoders.weights import MAPPED, Tensors
from tertium.errors import ModelError
from tertium.extras import require

TRIED_LENGTHS = (1, 6, 19, 40)  # pieces of the texts that tell whether texts stay apart
TRIED_PIECES = 100  # of the vocabulary: more would read a mapped table all over
SPARE = 4  # positions that some models count and do not have


class _DeepEnough(Exception):
    """Raised by a hook to end a forward pass; never leaves this module."""


class _Pass(threading.local):
    """A forward pass under way, each thread's own: what to keep of it, and where it ends."""

    kept: dict[int, Tensor]
    wanted: frozenset[int] = frozenset()
    stop: int | None = None
    calls: int = 0

    def __init__(self) -> None:
        self.kept = {}


class Hooked:
    """A model of transformers on a device: groups of texts in, states out.

    On a CPU its products are made not to mix texts (`apart.take_apart`).
    """

    def __init__(
        self, folder: Path, tensors: Tensors | None, *, precision: str, device: str
    ) -> None:
        model = self.model = _load_model(folder, tensors)
        self.depth = int(model.config.num_hidden_layers)
        self.padding = int(getattr(model.config, "pad_token_id", None) or 0)
        self._arithmetic = precision, device
        self._pass = _Pass()
        self._hooked = self._hook_layers()
        lower_precision(model, precision, device)
        model.to(device)
        if device == "cpu":
            take_apart(model)

    def __call__(
        self, groups: Sequence[Tensor], mask: Tensor | None, wanted: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        """States by layer, (texts, pieces, d) of each group, given as (texts, pieces) numbers.

        A mask, (texts, pieces), says which pieces of the only group are no padding.
        """
        with arithmetic(*self._arithmetic):
            found = [self._run(ids, mask, wanted) for ids in groups]
        return {layer: [states[layer] for states in found] for layer in wanted}

    def keeps_apart(self) -> bool:
        """Whether texts have the same states beside others as alone, to the last bit.

        The order in which a pass adds up depends on shapes and places, not on values; so a few
        lengths of random pieces tell.
        """
        generator = np.random.default_rng(1)
        size = min(int(self.model.config.vocab_size), TRIED_PIECES)
        room = int(getattr(self.model.config, "max_position_embeddings", 0) or 512) - SPARE
        wanted = frozenset(range(self.depth + 1))
        for length in [n for n in TRIED_LENGTHS if n <= room]:
            ids = torch.from_numpy(generator.integers(1, size, (3, length)))
            together, alone = self([ids], None, wanted), self(list(ids[:, None]), None, wanted)
            if not all(torch.equal(together[n][0], torch.cat(alone[n])) for n in wanted):
                return False
        return True

    def _run(self, ids: Tensor, mask: Tensor | None, wanted: frozenset[int]) -> dict[int, Tensor]:
        arguments: dict[str, Any] = {"return_dict": True, "output_hidden_states": not self._hooked}
        if mask is not None:
            arguments["attention_mask"] = mask.long()
        deepest = max(wanted)
        now = self._pass
        now.kept, now.calls, now.wanted = {}, 0, wanted
        now.stop = deepest if self._hooked and deepest < self.depth else None
        try:
            output = self.model(input_ids=ids, **arguments)
        except _DeepEnough:
            return now.kept
        finally:
            now.wanted, now.stop = frozenset(), None
        if not self._hooked:
            return {layer: output.hidden_states[layer] for layer in wanted}
        return {**now.kept, self.depth: output.last_hidden_state}

    def _hook_layers(self) -> bool:
        """Hook the first list of modules that yields the model's own hidden states."""
        ids = torch.tensor([[3, 4, 5, 6]]) % int(self.model.config.vocab_size)
        try:
            with torch.inference_mode():
                truth = self.model(
                    input_ids=ids, return_dict=True, output_hidden_states=True
                ).hidden_states
        except Exception as error:  # numbers that no attention can be made of
            said = str(error).partition("\n")[0]
            raise ModelError(f"a model's config.json does not fit its weights: {said}") from None
        if not torch.isfinite(truth[-1]).all():
            raise ModelError("a model's config.json makes NaN or infinite numbers of its weights")
        lists = [m for m in self.model.modules() if isinstance(m, nn.ModuleList) and len(m)]
        self._hooked = True
        for layers in lists:
            handles = self._attach(layers)
            with torch.inference_mode(), contextlib.suppress(TypeError, AttributeError):
                found = self._run(ids, None, frozenset(range(self.depth + 1)))
                if self._pass.calls == self.depth and _same_states(found, truth):
                    return True
            for handle in handles:
                handle.remove()
        return False

    def _attach(self, layers: nn.ModuleList) -> list[Any]:
        def enter(_: nn.Module, args: Any, kwargs: Any) -> None:
            now = self._pass
            if now.calls == 0 and 0 in now.wanted:
                now.kept[0] = args[0] if args else kwargs["hidden_states"]
                if now.stop == 0:
                    raise _DeepEnough

        def leave(_: nn.Module, args: Any, output: Any) -> None:
            now = self._pass
            now.calls += 1
            if now.calls in now.wanted:
                now.kept[now.calls] = output[0] if isinstance(output, tuple) else output
            if now.stop == now.calls:
                raise _DeepEnough

        handles: list[Any] = []
        for layer in layers:
            handles.append(layer.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(layer.register_forward_hook(leave))
        return handles


def _same_states(found: dict[int, Tensor], truth: Sequence[Tensor]) -> bool:
    return len(found) == len(truth) and all(
        found[i].shape == state.shape and torch.allclose(found[i], state, atol=1e-5)
        for i, state in enumerate(truth)
    )


def _load_model(folder: Path, tensors: Tensors | None) -> Any:
    """The encoder of a model folder in fp32; refuses weights that do not fit its architecture."""
    require("torch", "transformers", purpose=f"the model in {folder}")
    from transformers import MODEL_MAPPING, AutoConfig, AutoModel

    chosen: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    loader: Any = AutoModel
    with _quiet():
        try:
            config = AutoConfig.from_pretrained(folder, **chosen)
            if tensors is None:
                source: Path | None = folder
                chosen["use_safetensors"] = True
            else:
                source, loader = None, MODEL_MAPPING[type(config)]
                chosen = {"state_dict": dict(tensors())}
            model, report = loader.from_pretrained(
                source, config=config, output_loading_info=True, **chosen
            )
        except Exception as error:  # a config.json it cannot use ends in any type of error
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"the model in {folder} cannot be loaded: {said[0]}") from None
    missing = [k for k in report["missing_keys"] if "pooler" not in k and "position_ids" not in k]
    if missing:
        raise ModelError(
            f"the weights in {folder} do not fit its config.json: {len(missing)} tensors are "
            f"missing, such as {sorted(missing)[0]}"
        )
    read = ((n, p) for n, p in model.named_parameters() if p.numel() < MAPPED)
    broken = next((n for n, p in read if not torch.isfinite(p).all()), None)
    if broken:
        raise ModelError(f"the weights in {folder} hold NaN or infinite numbers: {broken}")
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    return model.float().eval().requires_grad_(False)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's progress bars and advice off stderr while a model loads."""
    import transformers

    logging: Any = transformers.utils.logging
    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
