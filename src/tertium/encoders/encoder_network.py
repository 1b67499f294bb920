"""The network of a model folder on a device: token ids in, hidden states and pooled vectors out.

Our own forward pass (`bert`) runs the architectures it supports, transformers all others
(`TransformersModel`: all layers run, whichever are requested). On a CPU, texts of a batch are
grouped by length; on a GPU, they are padded. `build_network` builds networks whose weights are
loaded from a file, without random initialization.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.overrides import TorchFunctionMode

from tertium.core.arrays import IntArray
from tertium.core.errors import ModelError
from tertium.core.extras import require_modules
from tertium.core.runtime import current_runtime
from tertium.encoders.batching import map_on_threads, plan_batches, run_or_split
from tertium.encoders.model_settings import Pooling
from tertium.encoders.transformer_layer import DTYPES, autocast_context, convert_linear_layers
from tertium.encoders.weight_files import TensorLoader, explain_loading

R = TypeVar("R")

# Tokens per batch, and the cost of starting a batch in tokens, measured with minilm. On a CPU it
# pays more to keep activations in the cache than to multiply large matrices.
TOKEN_BUDGETS = {"cpu": 1024, "gpu": 16384}
BATCH_OVERHEADS = {"cpu": 1024, "gpu": 2048}
MIN_BATCH_TOKENS = 256  # batches are not made smaller than this to occupy all threads


class EncoderNetwork(nn.Module):
    """A network of `depth` layers; layer 0 is the embedding layer, layer `depth` the output."""

    def __init__(self, *, depth: int, pad_token_id: int, device: str, precision: str) -> None:
        super().__init__()
        self.depth = depth
        self.pad_token_id = pad_token_id
        self.device = device
        self.precision = precision

    @abstractmethod
    def compute_states(
        self, groups: Sequence[Tensor], mask: Tensor | None, layers: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        """Return the states of the requested layers for each group of texts of equal length.

        Each group is (texts, length) token ids; its states are (texts, length, hidden). A padded
        batch is one group with a mask (texts, length), True for tokens.
        """

    def forward(
        self, rows: Sequence[Sequence[int]], layers: Sequence[int], pooling: Pooling | None
    ) -> tuple[list[Tensor], Tensor | None]:
        """Run texts, given as token ids with special tokens, through the network.

        Returns the states of each layer, (texts, positions, d), and the pooled vectors
        (texts, width) if `pooling` is given.
        """
        groups, mask = self._group(rows)
        needed = frozenset(layers) | ({self.depth} if pooling else set())
        with torch.inference_mode():
            states = self.compute_states(groups, mask, needed)
            pooled = self._pool(pooling, states[self.depth], mask) if pooling else None
            joined = [join_groups(states[layer]) for layer in layers]
        # rounded to the precision, as fp32, so that a cache stores the exact values
        return [layer.to(DTYPES[self.precision]).float() for layer in joined], pooled

    def plan_batches(self, lengths: Sequence[int] | IntArray) -> list[IntArray]:
        """Partition texts of these token counts into batches that suit device and runtime."""
        runtime = current_runtime()
        kind = "cpu" if self.device == "cpu" else "gpu"
        budget = TOKEN_BUDGETS[kind]
        if kind == "cpu":
            threads = runtime.threads or torch.get_num_threads()
            budget = min(budget, max(MIN_BATCH_TOKENS, -(-int(np.sum(lengths)) // threads)))
        return plan_batches(
            lengths,
            budget=runtime.token_budget or budget,
            overhead=BATCH_OVERHEADS[kind],
            limit=runtime.batch_size,
        )

    def map_batches(
        self, function: Callable[[IntArray], R], lengths: Sequence[int] | IntArray
    ) -> Iterator[R]:
        """Yield the results of batches of texts of these token counts, on a CPU by thread.

        `function` takes the indices of texts. A batch that does not fit into memory is split.
        """
        run = partial(run_or_split, function)
        apply = map_on_threads if self.device == "cpu" else map
        yield from chain.from_iterable(apply(run, self.plan_batches(lengths)))

    def check_finite(self, vocab_size: int) -> None:
        """Reject settings with which a short text has states that are not finite."""
        ids = torch.arange(4, device=self.device)[None] % vocab_size
        with torch.inference_mode():
            [states] = self.compute_states([ids], None, frozenset({self.depth}))[self.depth]
        if not states.isfinite().all():
            raise ModelError("the model's config.json and weights give NaN or infinite states")

    def _group(self, rows: Sequence[Sequence[int]]) -> tuple[list[Tensor], Tensor | None]:
        """Convert rows to tensors (texts, length): by length on a CPU, padded on a GPU."""
        if self.device == "cpu":
            return [torch.tensor(list(same)) for _, same in groupby(rows, len)], None
        tensors = [torch.tensor(row) for row in rows]
        ids = pad_sequence(tensors, batch_first=True, padding_value=self.pad_token_id)
        mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
        return [ids.to(self.device)], None if mask.all() else mask.to(self.device)

    def _pool(self, pooling: Pooling, groups: Sequence[Tensor], mask: Tensor | None) -> Tensor:
        if self.device != "cpu":
            [states] = groups
            full = mask if mask is not None else states.new_ones(states.shape[:2])
            return pooling(states.float(), full)
        texts = [group[i : i + 1].float().clone() for group in groups for i in range(len(group))]
        return torch.cat([pooling(text, text.new_ones(text.shape[:2])) for text in texts])


def join_groups(groups: Sequence[Tensor]) -> Tensor:
    """Concatenate groups of texts (texts, length, d), padding shorter ones with zeros."""
    width = max(group.shape[1] for group in groups)
    padded = [F.pad(group, (0, 0, 0, width - group.shape[1])) for group in groups]
    return padded[0] if len(padded) == 1 else torch.cat(padded)


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
    purpose = f"the model in {folder}"
    require_modules("torch", "transformers", purpose=purpose)
    from transformers import MODEL_MAPPING, AutoConfig, AutoModel

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    loader: Any = AutoModel
    with _quiet_transformers(), explain_loading(purpose):
        config = AutoConfig.from_pretrained(folder, **options)
        source: Path | None = folder
        if load_tensors is None:
            options["use_safetensors"] = True
        else:
            source = None
            loader = MODEL_MAPPING[type(config)]
            options = {"state_dict": dict(load_tensors())}
        options |= {"config": config, "output_loading_info": True}
        model, report = loader.from_pretrained(source, **options)
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


MAX_CHECKED_VALUES = 1 << 26  # the check of a larger, memory-mapped table would read all of it
Module = TypeVar("Module", bound=nn.Module)


class SkipInit(TorchFunctionMode):
    """Context in which `torch.nn.init` functions, slow and not needed, leave tensors unchanged."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


def build_network(
    make: Callable[[], Module], tensors: Mapping[str, Tensor], where: object, *, copy: bool = True
) -> Module:
    """Build the network of `make`, load these tensors, and prepare it for inference.

    The network is created without memory, so that a configuration of absurd size is refused by the
    shapes of the weights before anything is allocated. Integer weights are shared, not copied; with
    `copy=False` no weights are copied.
    """
    try:
        with torch.device("meta"), SkipInit():
            network = make()
    except (TypeError, ValueError, OverflowError, RuntimeError):  # sizes beyond 64 bits
        raise ModelError(f"the config.json of {where} describes an impossible network") from None
    shapes = network.state_dict()
    check_tensors(tensors, shapes, where)
    weights = {
        name: tensor.to(shapes[name].dtype, copy=copy and tensor.is_floating_point())
        for name, tensor in tensors.items()
    }
    network.load_state_dict(weights, assign=True)
    return network.eval().requires_grad_(False)


def check_tensors(
    tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: object
) -> None:
    """Raise unless names, shapes and types of tensors match and all numbers are finite."""
    for name in {**wanted, **tensors}:
        if problem := _find_problem(tensors.get(name), wanted.get(name)):
            raise ModelError(
                f"the weights in {where} do not fit its config.json: {name[:60]} {problem}"
            )


def _find_problem(tensor: Tensor | None, expected: Tensor | None) -> str:
    if tensor is None:
        return "is missing"
    if expected is None:
        return "is unexpected"
    if tensor.shape != expected.shape:
        return f"has shape {tuple(tensor.shape)}, expected {tuple(expected.shape)}"
    if tensor.is_floating_point() != expected.is_floating_point():
        return f"has type {tensor.dtype}, expected {expected.dtype}"
    is_checked = tensor.is_floating_point() and 0 < tensor.numel() < MAX_CHECKED_VALUES
    if is_checked and not torch.stack(tensor.aminmax()).isfinite().all():
        return "has NaN or infinite numbers"
    return ""
