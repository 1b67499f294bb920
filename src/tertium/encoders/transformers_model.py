"""Run any other architecture with transformers, only as deep as the deepest requested layer.

The layers of a model are the list of modules whose outputs equal the model's own hidden states,
found by a test run when the model is loaded. Hooks on them collect the requested states and stop
the forward pass after the deepest one. A model whose layers are not found always runs completely.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tertium.encoders.linear_layers import autocast_context, convert_linear_layers
from tertium.encoders.weight_files import MAX_CHECKED_VALUES, TensorLoader
from tertium.errors import ModelError
from tertium.extras import require_modules


class _StopForward(Exception):
    """Raised by a hook to end a forward pass; never leaves this module."""


class _PassState(threading.local):
    states: dict[int, Tensor]
    layers: frozenset[int] = frozenset()
    last_layer: int | None = None
    calls: int = 0

    def __init__(self) -> None:
        self.states = {}


class TransformersModel:
    """A transformers model on a device."""

    def __init__(
        self, folder: Path, load_tensors: TensorLoader | None, *, precision: str, device: str
    ) -> None:
        model = self.model = _load_model(folder, load_tensors)
        self.depth = int(model.config.num_hidden_layers)
        self.pad_token_id = int(getattr(model.config, "pad_token_id", None) or 0)
        self._precision, self._device = precision, device
        self._pass = _PassState()
        self._has_hooks = self._hook_layers()
        convert_linear_layers(model, precision, device, pack=False)
        model.to(device)

    def __call__(
        self, groups: Sequence[Tensor], mask: Tensor | None, layers: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        """Return the states of the requested layers, see `bert.BertModel.forward`."""
        with autocast_context(self._precision, self._device):
            by_group = [self._run(ids, mask, layers) for ids in groups]
        return {layer: [states[layer] for states in by_group] for layer in layers}

    def _run(self, ids: Tensor, mask: Tensor | None, layers: frozenset[int]) -> dict[int, Tensor]:
        options: dict[str, Any] = {"return_dict": True, "output_hidden_states": not self._has_hooks}
        if mask is not None:
            options["attention_mask"] = mask.long()
        deepest = max(layers)
        current = self._pass
        current.states, current.calls, current.layers = {}, 0, layers
        current.last_layer = deepest if self._has_hooks and deepest < self.depth else None
        try:
            output = self.model(input_ids=ids, **options)
        except _StopForward:
            return current.states
        finally:
            current.layers, current.last_layer = frozenset(), None
        if not self._has_hooks:
            return {layer: output.hidden_states[layer] for layer in layers}
        return {**current.states, self.depth: output.last_hidden_state}

    def _hook_layers(self) -> bool:
        """Hook the first list of modules that yields the model's own hidden states."""
        ids = torch.tensor([[3, 4, 5, 6]]) % int(self.model.config.vocab_size)
        try:
            with torch.inference_mode():
                expected = self.model(
                    input_ids=ids, return_dict=True, output_hidden_states=True
                ).hidden_states
        except Exception as error:  # for instance sizes that do not divide among heads
            reason = str(error).partition("\n")[0]
            raise ModelError(
                f"the model's config.json does not fit its weights: {reason}"
            ) from None
        if not torch.isfinite(expected[-1]).all():
            raise ModelError("the model's config.json and weights give NaN or infinite states")
        lists = [m for m in self.model.modules() if isinstance(m, nn.ModuleList) and len(m)]
        self._has_hooks = True
        for layers in lists:
            handles = self._attach_hooks(layers)
            with torch.inference_mode(), contextlib.suppress(TypeError, AttributeError):
                states = self._run(ids, None, frozenset(range(self.depth + 1)))
                if self._pass.calls == self.depth and _are_equal_states(states, expected):
                    return True
            for handle in handles:
                handle.remove()
        return False

    def _attach_hooks(self, layers: nn.ModuleList) -> list[Any]:
        def before(_: nn.Module, args: Any, kwargs: Any) -> None:
            current = self._pass
            if current.calls == 0 and 0 in current.layers:
                current.states[0] = args[0] if args else kwargs["hidden_states"]
                if current.last_layer == 0:
                    raise _StopForward

        def after(_: nn.Module, args: Any, output: Any) -> None:
            current = self._pass
            current.calls += 1
            if current.calls in current.layers:
                current.states[current.calls] = output[0] if isinstance(output, tuple) else output
            if current.last_layer == current.calls:
                raise _StopForward

        handles: list[Any] = []
        for layer in layers:
            handles.append(layer.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(layer.register_forward_hook(after))
        return handles


def _are_equal_states(states: dict[int, Tensor], expected: Sequence[Tensor]) -> bool:
    return len(states) == len(expected) and all(
        states[i].shape == state.shape and torch.allclose(states[i], state, atol=1e-5)
        for i, state in enumerate(expected)
    )


def _load_model(folder: Path, load_tensors: TensorLoader | None) -> Any:
    """Load the encoder of a model folder in fp32; its weights must match its architecture."""
    require_modules("torch", "transformers", purpose=f"the model in {folder}")
    from transformers import MODEL_MAPPING, AutoConfig, AutoModel

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    loader: Any = AutoModel
    with _quiet_transformers():
        try:
            config = AutoConfig.from_pretrained(folder, **options)
            if load_tensors is None:
                source: Path | None = folder
                options["use_safetensors"] = True
            else:
                source, loader = None, MODEL_MAPPING[type(config)]
                options = {"state_dict": dict(load_tensors())}
            model, report = loader.from_pretrained(
                source, config=config, output_loading_info=True, **options
            )
        except Exception as error:  # an invalid config.json raises any type of error
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"the model in {folder} cannot be loaded: {lines[0]}") from None
    missing = [k for k in report["missing_keys"] if "pooler" not in k and "position_ids" not in k]
    if missing:
        raise ModelError(
            f"the weights in {folder} do not match its config.json: {len(missing)} tensors are "
            f"missing, such as {sorted(missing)[0]}"
        )
    checked = ((n, p) for n, p in model.named_parameters() if p.numel() < MAX_CHECKED_VALUES)
    invalid = next((n for n, p in checked if not torch.isfinite(p).all()), None)
    if invalid:
        raise ModelError(f"the weights in {folder} contain NaN or infinite values: {invalid}")
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    return model.float().eval().requires_grad_(False)


@contextlib.contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Keep progress bars and advice of transformers off stderr while a model loads."""
    import transformers

    logging: Any = transformers.utils.logging
    level = logging.get_verbosity()
    has_progress_bar = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_progress_bar:
            logging.enable_progress_bar()
