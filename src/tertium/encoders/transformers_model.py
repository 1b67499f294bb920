"""Run any other architecture with transformers.

All layers of such a model run, whichever are requested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from tertium.core.errors import ModelError
from tertium.core.extras import require_modules
from tertium.encoders.encoder_network import EncoderNetwork
from tertium.encoders.linear_layers import autocast_context, convert_linear_layers
from tertium.encoders.weight_files import TensorLoader


class TransformersModel(EncoderNetwork):
    """A transformers model on a device."""

    def __init__(
        self, folder: Path, load_tensors: TensorLoader | None, *, precision: str, device: str
    ) -> None:
        model = _load_model(folder, load_tensors)
        super().__init__(
            depth=int(model.config.num_hidden_layers),
            pad_token_id=int(getattr(model.config, "pad_token_id", None) or 0),
            device=device,
            precision=precision,
        )
        convert_linear_layers(model, precision, device, pack=False)
        self.model = model.to(device)
        try:
            self.check_finite(int(model.config.vocab_size))
        except ModelError:
            raise
        except Exception as error:  # for instance sizes that do not divide among heads
            reason = str(error).partition("\n")[0]
            raise ModelError(
                f"the model's config.json does not fit its weights: {reason}"
            ) from None

    def compute_states(
        self, groups: Sequence[Tensor], mask: Tensor | None, layers: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        options = {} if mask is None else {"attention_mask": mask.long()}
        states: dict[int, list[Tensor]] = {layer: [] for layer in layers}
        with autocast_context(self.precision, self.device):
            for ids in groups:
                output = self.model(input_ids=ids, output_hidden_states=True, **options)
                for layer in layers:
                    states[layer].append(output.hidden_states[layer])
        return states


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
