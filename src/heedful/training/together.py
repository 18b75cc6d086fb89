"""Training Transformers side by side: the loop of `fit`, over a stack.

Every model has its own start, its own dropout and, unless `order_seed` says otherwise, its own
order of batches: it ends as it would alone with its seed, up to rounding (and on a GPU up to what
dropout draws). The documents lie on the device as one table; an epoch's batches are rows of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import collate, groups
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.errors import InputError, unknown
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_stack import Drops, StackBatch, TransformerStack
from heedful.runs.atomic import plain, writing
from heedful.runs.progress import ticking
from heedful.runs.randomness import numpy_generator, seeded
from heedful.runs.steps import fingerprint
from heedful.statistics.scores import classification_scores
from heedful.training.checkpoints import CHECKPOINT
from heedful.training.config import TrainConfig
from heedful.training.evaluation import Metrics
from heedful.training.loop import History, optimiser_for
from heedful.training.refusals import refuse_diverged, refuse_unfit
from heedful.training.seeds import reduced_precision

SLACK = 1.5
"""Batches are padded to each other's size up to this factor; others are a pass of their own."""
DEV_TOKENS = 16_384
"""Documents × longest document of a dev batch, which every model reads."""


def fit_together(
    models: Sequence[TransformerClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig = TrainConfig(),
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    show: bool = False,
) -> list[History]:
    """Trains all models in place, each as `fit` would alone; each keeps its best dev weights.

    With a folder a kill goes on from its checkpoint, which stays (`remove_checkpoint`), and ends
    with the same numbers. Products are in TF32 on a GPU.
    """
    _check(models, corpus, config, seeds)
    target = torch.device(device)
    with seeded(seeds[0]), reduced_precision(target):
        run = _Run(TransformerStack(models, target), corpus, config, list(seeds), target)
        described = {
            "models": [asdict(model.config) for model in models],
            "train": asdict(config),
            "corpus": corpus.fingerprint,
            "seeds": list(seeds),
            "device": target.type,
        }
        mark, saved = fingerprint(described), time.monotonic()
        if folder is not None:
            run.resume(folder / CHECKPOINT, mark)
        each = len(corpus.splits["train"])
        total = each * config.epochs
        with ticking(f"training {len(models)} models", total, show=show) as ticker:
            ticker.advance(each * run.done.epoch)
            while run.done.epoch < config.epochs and not all(run.done.stopped):
                run.epoch()
                ticker.advance(each)
                if folder is not None and time.monotonic() - saved > config.checkpoint_seconds:
                    run.save(folder / CHECKPOINT, mark)
                    saved = time.monotonic()
    run.stack.write(run.best)
    done = run.done
    return [
        History(tuple(done.history[row]), done.best[row], done.best_step[row])
        for row in range(len(models))
    ]


@dataclass
class _Done:
    """How far training has come, one entry per model; plain numbers only."""

    epoch: int
    step: int
    best: list[float]
    best_step: list[int]
    without_gain: list[int]
    stopped: list[bool]
    history: list[list[dict[str, Any]]] = field(default_factory=list)


class _Run:
    """The state of training between two epochs."""

    def __init__(
        self,
        stack: TransformerStack,
        corpus: EncodedCorpus,
        config: TrainConfig,
        seeds: list[int],
        device: torch.device,
    ) -> None:
        self.stack, self.config, self.seeds, self.device = stack, config, seeds, device
        self.train, self.dev = corpus.splits["train"], corpus.splits["dev"]
        self.optimiser = optimiser_for([("weights", stack.weights)], config)
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.best = stack.weights.detach().clone()
        count = len(stack)
        never, none = [-float("inf")] * count, [0] * count
        self.done = _Done(0, 0, never, none, list(none), [False] * count, [[] for _ in seeds])
        self.table = _Table.of(self.train, device)
        rows = groups(self.dev, 256, max_tokens=DEV_TOKENS)
        self.dev_batches = [self._everyones(group) for group in rows]

    def epoch(self) -> None:
        """One pass of every model over its documents, then an evaluation."""
        done, stack = self.done, self.stack
        orders = self._orders()
        drops_until = [model.config.dropout_epochs for model in stack.models]
        is_dropping = [last is None or done.epoch < last for last in drops_until]
        total = torch.zeros(len(stack), dtype=torch.float64, device=self.device)
        for number in range(len(orders[0])):
            self.optimiser.zero_grad(set_to_none=True)
            for batch in self.table.batches([order[number] for order in orders]):
                drops = Drops(
                    [self.generators[row] for row in batch.models],
                    [is_dropping[row] for row in batch.models],
                    batch.sizes,
                )
                losses = stack.losses(stack.forward(batch, drops), batch)
                losses.sum().backward()  # type: ignore[no-untyped-call]
                stack.scatter(total, losses.detach().double(), batch.models)
            self._clip()
            self.optimiser.step()
            done.step += 1
        refuse_diverged([stack.weights], done.epoch)
        done.epoch += 1
        self._evaluate((total / len(orders[0])).tolist())

    def _orders(self) -> list[list[Int[np.ndarray, "batch"]]]:
        """The documents of every batch of this epoch, for each model; one list for equal seeds."""
        given, size = self.config.order_seed, self.config.batch_size
        wanted = [seed if given is None else given for seed in self.seeds]
        found = {
            seed: groups(self.train, size, numpy_generator(seed, "epoch", self.done.epoch))
            for seed in dict.fromkeys(wanted)
        }
        return [found[seed] for seed in wanted]

    def _clip(self) -> None:
        gradient = self.stack.weights.grad
        assert gradient is not None
        if self.config.clip_value:
            gradient.clamp_(-self.config.clip_value, self.config.clip_value)
        if self.config.clip_norm:
            # As torch's clip_grad_norm_ does for one model.
            length = gradient.square().sum(1, keepdim=True).sqrt()
            gradient *= (self.config.clip_norm / (length + 1e-6)).clamp(max=1.0)

    def _everyones(self, rows: Int[np.ndarray, "batch"]) -> StackBatch:
        """A batch of dev that all models read, on the device once and for all."""
        batch = collate(self.dev, rows).to(self.device)
        count = len(self.stack)
        ids, mask = (x.expand(count, -1, -1) for x in (batch.ids, batch.mask))
        labels = batch.labels.expand(count, -1)
        share = (labels >= 0).to(self.stack.weights.dtype)
        sizes = ((len(batch), ids.shape[2]),) * count
        return StackBatch(tuple(range(count)), ids, mask, labels, share, sizes)

    @torch.no_grad()
    def _evaluate(self, losses: list[float]) -> None:
        """Dev metrics of every model; the device is waited for once."""
        total = torch.zeros(len(self.stack), dtype=torch.float64, device=self.device)
        decided = []
        for batch in self.dev_batches:
            logits = self.stack.forward(batch).double()
            right = batch.labels.clamp_min(0)[..., None]
            lost = logits.logsumexp(-1) - logits.gather(-1, right)[..., 0]
            total += (lost * batch.share).sum(1)
            decided.append(logits.argmax(-1).to(torch.int16))
        labels = torch.cat([batch.labels[0] for batch in self.dev_batches]).cpu().numpy()
        predicted = torch.cat(decided, 1).cpu().numpy()
        is_known = labels >= 0
        known = labels[is_known]
        scores = classification_scores(
            predicted[:, is_known].astype(np.int64), known, len(self.stack.models[0].classes)
        )
        summed = total.tolist()
        gained = []
        for row in range(len(self.stack)):
            found = Metrics(
                loss=summed[row] / max(len(known), 1),
                accuracy=float(scores.accuracy[0, row]),
                macro_f1=float(scores.macro_f1[0, row]),
                f1=tuple(float(value) for value in scores.f1[0, row]),
            )
            if self._judge(row, found, losses[row]):
                gained.append(row)
        if gained:
            rows = torch.tensor(gained, device=self.device)
            self.best[rows] = self.stack.weights.detach()[rows]

    def _judge(self, row: int, found: Metrics, loss: float) -> bool:
        """Notes an evaluation of one model; whether its weights are the best so far."""
        done, config = self.done, self.config
        if done.stopped[row]:
            return False
        value = found.chosen(config.select)
        is_best = value > done.best[row]
        if is_best:
            done.best[row], done.best_step[row], done.without_gain[row] = value, done.step, 0
        else:
            done.without_gain[row] += 1
            done.stopped[row] = 0 < config.patience <= done.without_gain[row]
        entry: dict[str, Any] = {"step": done.step, "epoch": float(done.epoch), "loss": loss}
        entry |= {f"dev_{name}": plain(number) for name, number in asdict(found).items()}
        done.history[row].append(entry | {"learning_rate": config.learning_rate})
        return is_best

    def save(self, path: Path, mark: str) -> None:
        """Writes everything that the next epoch depends on, atomically."""
        state = self.optimiser.state_dict()["state"][0]
        tensors = {"weights": self.stack.weights.detach(), "best": self.best}
        tensors |= {f"optimiser.{name}": value for name, value in state.items()}
        tensors["random"] = torch.stack([g.get_state() for g in self.generators])
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        metadata = {"done": json.dumps(asdict(self.done)), "fingerprint": mark}
        with writing(path) as temporary:
            kept = {name: value.cpu().contiguous() for name, value in tensors.items()}
            save_file(kept, temporary, metadata)

    def resume(self, path: Path, mark: str) -> None:
        """Goes on from the checkpoint, where there is one of this very training."""
        if not path.is_file():
            return
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("fingerprint") != mark:
            raise InputError(
                f"The checkpoint {path} belongs to a training with other settings or data; remove "
                "it to train from the start."
            )
        self.done = _Done(**json.loads(metadata["done"]))
        with torch.no_grad():
            self.stack.weights.copy_(tensors["weights"])
            self.best.copy_(tensors["best"])
        state = {
            name.removeprefix("optimiser."): value
            for name, value in tensors.items()
            if name.startswith("optimiser.")
        }
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": {0: state}})
        for generator, drawn in zip(self.generators, tensors["random"], strict=True):
            generator.set_state(drawn.clone())
        if "random.cuda" in tensors and self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)


@dataclass(frozen=True, eq=False)
class _Table:
    """All documents of a split on the device, padded; a batch is some of its rows."""

    ids: Int[Tensor, "document token"]
    mask: Bool[Tensor, "document token"]
    labels: Int[Tensor, "document"]
    lengths: Int[np.ndarray, "document"]

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device) -> _Table:
        """The table, and a last row of one token that fills up smaller batches."""
        whole = collate(encoded, np.arange(len(encoded)))
        ids = functional.pad(whole.ids, (0, 0, 0, 1))
        mask = functional.pad(whole.mask, (0, 0, 0, 1))
        mask[-1, 0] = True
        labels = functional.pad(whole.labels, (0, 1))
        return cls(ids.to(device), mask.to(device), labels.to(device), encoded.lengths)

    def batches(self, rows: Sequence[Int[np.ndarray, "batch"]]) -> Iterator[StackBatch]:
        """Each model's own documents, models whose batches are of similar size side by side."""
        sizes = [(len(own), int(self.lengths[own].max())) for own in rows]
        area = [size * length for size, length in sizes]
        chosen: list[int] = []
        for row in sorted(range(len(rows)), key=lambda row: area[row]):
            if chosen and area[row] > SLACK * area[chosen[0]]:
                yield self._batch(rows, sorted(chosen), sizes)
                chosen = []
            chosen.append(row)
        yield self._batch(rows, sorted(chosen), sizes)

    def _batch(
        self,
        every: Sequence[Int[np.ndarray, "batch"]],
        models: list[int],
        every_size: Sequence[tuple[int, int]],
    ) -> StackBatch:
        rows, sizes = [every[row] for row in models], tuple(every_size[row] for row in models)
        most, longest = max(size for size, _ in sizes), max(length for _, length in sizes)
        filler = len(self.lengths)
        chosen = np.full((len(rows), most), filler)
        for row, own in enumerate(rows):
            chosen[row, : len(own)] = own
        at = torch.from_numpy(chosen)
        if self.ids.is_cuda:
            at = at.pin_memory().to(self.ids.device, non_blocking=True)
        share = (at < filler).to(torch.get_default_dtype())
        ids, mask = self.ids[at, :longest], self.mask[at, :longest]
        return StackBatch(tuple(models), ids, mask, self.labels[at], share, sizes)


def _check(
    models: Sequence[TransformerClassifier],
    corpus: EncodedCorpus,
    config: TrainConfig,
    seeds: Sequence[int],
) -> None:
    refuse_unfit(models, corpus, seeds)
    selections = ("accuracy", "macro_f1", "f1", "loss")
    if config.select not in selections:
        raise unknown("metric to select this model by", config.select, selections)
    refused = {
        "balanced": config.balanced,
        "halve_on_plateau": config.halve_on_plateau,
        "max_batch_tokens": config.max_batch_tokens,
        "evaluate_at": config.evaluate_at,
        "decay": config.decay != "all",
    }
    for name, is_set in refused.items():
        if is_set:
            raise InputError(f"{name} cannot be used for models trained together; use fit.")
