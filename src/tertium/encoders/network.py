"""A Hugging Face encoder run only as deep as it is asked to.

The layers are found as the list of modules whose outputs are the model's own hidden states (tried
on a short input when the model is loaded). Hooks on them keep what is wanted and stop the forward
pass behind the deepest layer that is needed. A model whose layers cannot be found runs whole.
On a CPU texts that share a pass do not change each other's states by a bit: see `apart`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tertium.arrays import BoolArray, IntArray
from tertium.encoders.apart import DTYPES, arithmetic, check_precision, lower_precision, take_apart
from tertium.encoders.settings import Pooling
from tertium.encoders.weights import Tensors
from tertium.errors import ModelError
from tertium.runtime import choose_device

TRIED_LENGTHS = (1, 6, 19, 40)  # pieces of the texts that tell whether texts stay apart
TRIED_PIECES = 100  # of the vocabulary: more would read a mapped table all over
SPARE = 4  # positions that some models count and do not have


# A table of this many numbers stays mapped from its file; to look at all of it would read it whole.
MAPPED = 1 << 26


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


class Network:
    """The model of a folder on a device: numbers of pieces in, states out.

    `depth` is its number of layers; states of layer 0 are the embeddings, of layer `depth` the
    model's output. `tensors` gives the weights where the folder holds none; `change` may put
    others into the model when it is loaded. `alone` says that texts must not share a pass: tried
    when the model is loaded, they changed each other.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str,
        precision: str,
        tensors: Tensors | None = None,
        change: Callable[[Any], None] | None = None,
    ) -> None:
        check_precision(precision, device)
        self.device, self.precision = device, precision
        model = _load_model(folder, tensors)
        if change is not None:
            change(model)
        self.depth = int(model.config.num_hidden_layers)
        self.padding = int(getattr(model.config, "pad_token_id", None) or 0)
        self._model = model
        self._pass = _Pass()
        self._hooked = self._hook_layers()
        lower_precision(model, precision, device)
        model.to(device)
        self.alone = False
        if device == "cpu":
            take_apart(model)
            self.alone = not self._keeps_texts_apart()

    def __call__(
        self, rows: Sequence[Sequence[int]], layers: Sequence[int], pooling: Pooling | None
    ) -> tuple[list[Tensor], Tensor | None]:
        """States of the layers, each (texts, positions, d), and pooled vectors where asked for.

        `rows` holds the numbers of each text's pieces, special tokens among them.
        """
        ids, mask = pad(rows, self.padding)
        numbers = torch.from_numpy(ids).to(self.device)
        masks = None if mask is None else torch.from_numpy(mask).to(self.device)
        wanted = frozenset(layers) | ({self.depth} if pooling else set())
        with torch.inference_mode(), arithmetic(self.precision, self.device):
            states = self._run(numbers, masks, wanted)
        with torch.inference_mode():
            pooled = None
            if pooling:
                full = masks if masks is not None else torch.ones_like(numbers)
                pooled = self._pool(pooling, states[self.depth].float(), full)
            return [self._round(states[layer]) for layer in layers], pooled

    def _pool(self, pooling: Pooling, states: Tensor, mask: Tensor) -> Tensor:
        if self.device != "cpu":
            return pooling(states, mask)
        texts = range(len(states))
        return torch.cat([pooling(states[i : i + 1].clone(), mask[i : i + 1]) for i in texts])

    def _keeps_texts_apart(self) -> bool:
        """Whether texts have the same states beside others as alone, to the last bit.

        The order in which a pass adds up depends on shapes and places, not on values; so a few
        lengths of random pieces tell.
        """
        generator = np.random.default_rng(1)
        size = min(int(self._model.config.vocab_size), TRIED_PIECES)
        wanted, threads = range(self.depth + 1), torch.get_num_threads()
        room = int(getattr(self._model.config, "max_position_embeddings", 0) or 512) - SPARE
        torch.set_num_threads(1)
        try:
            for length in [n for n in TRIED_LENGTHS if n <= room]:
                rows = generator.integers(1, size, (3, length)).tolist()
                together, _ = self(rows, wanted, None)
                for place, row in enumerate(rows):
                    alone, _ = self([row], wanted, None)
                    pairs = zip(together, alone, strict=True)
                    if not all(torch.equal(a[place], b[0]) for a, b in pairs):
                        return False
        finally:
            torch.set_num_threads(threads)
        return True

    def _round(self, states: Tensor) -> Tensor:
        """Values that the precision can hold, as fp32, so that storing them loses nothing."""
        return states.to(DTYPES[self.precision]).float()

    def _run(self, ids: Tensor, mask: Tensor | None, wanted: frozenset[int]) -> dict[int, Tensor]:
        arguments: dict[str, Any] = {"return_dict": True, "output_hidden_states": not self._hooked}
        if mask is not None:
            arguments["attention_mask"] = mask.long()
        deepest = max(wanted)
        now = self._pass
        now.kept, now.calls, now.wanted = {}, 0, wanted
        now.stop = deepest if self._hooked and deepest < self.depth else None
        try:
            output = self._model(input_ids=ids, **arguments)
        except _DeepEnough:
            return now.kept
        finally:
            now.wanted, now.stop = frozenset(), None
        if not self._hooked:
            return {layer: output.hidden_states[layer] for layer in wanted}
        return {**now.kept, self.depth: output.last_hidden_state}

    def _hook_layers(self) -> bool:
        """Hook the first list of modules that yields the model's own hidden states."""
        ids = torch.tensor([[3, 4, 5, 6]]) % int(self._model.config.vocab_size)
        try:
            with torch.inference_mode():
                truth = self._model(
                    input_ids=ids, return_dict=True, output_hidden_states=True
                ).hidden_states
        except Exception as error:  # numbers that no attention can be made of
            said = str(error).partition("\n")[0]
            raise ModelError(f"a model's config.json does not fit its weights: {said}") from None
        if not torch.isfinite(truth[-1]).all():
            raise ModelError("a model's config.json makes NaN or infinite numbers of its weights")
        lists = [m for m in self._model.modules() if isinstance(m, nn.ModuleList) and len(m)]
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


def check_device(device: str, precision: str) -> None:
    """Refuse a device that is not there, or one that cannot compute in this precision."""
    check_precision(precision, choose_device(device))


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[IntArray, BoolArray | None]:
    """Rows of numbers as one matrix, with a mask where their lengths differ.

    >>> pad([[5, 6, 7], [8]], 0)
    (array([[5, 6, 7],
           [8, 0, 0]]), array([[ True,  True,  True],
           [ True, False, False]]))
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(lengths.max())
    if int(lengths.min()) == width:
        return np.array(rows, dtype=np.int64), None
    ids = np.full((len(rows), width), padding, dtype=np.int64)
    mask = np.arange(width) < lengths[:, None]
    ids[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, mask


def _load_model(folder: Path, tensors: Tensors | None) -> Any:
    """The encoder of a model folder in fp32; refuses weights that do not fit its architecture."""
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
