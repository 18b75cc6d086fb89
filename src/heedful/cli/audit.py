"""`heedful audit`: a model's attention put to every test, with a verdict and one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import (
    AsJson,
    Config,
    CorpusName,
    DataFile,
    DataRoot,
    Deterministic,
    Device,
    LabelColumn,
    Long,
    Out,
    Quick,
    RemoteCode,
    SecondColumn,
    Seed,
    Site,
    SplitColumn,
    TextColumn,
    Vectors,
    for_run,
    for_transformer,
    open_to_train,
    place,
    print_json,
    settings_named,
    source_named,
)
from heedful.errors import InputError


def audit(
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder, a folder or hf:NAME of a transformers classifier, or a recipe or "
            "preset, which is trained first."
        ),
    ] = "bilstm+additive",
    corpus: CorpusName = None,
    data: DataFile = None,
    text: TextColumn = None,
    text2: SecondColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    deterministic: Deterministic = False,
    documents: Annotated[
        int, typer.Option("--documents", help="Audit at most this many; 0 audits all.")
    ] = 2000,
    site: Site = "pooled",
    long: Long = "beginning",
    trust_remote_code: RemoteCode = False,
    config: Config = None,
    vectors: Vectors = None,
    data_root: DataRoot = None,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Audit a model's attention: verdict, numbers, pictures, one page."""
    from heedful.jobs import audit as audit_job
    from heedful.jobs import load
    from heedful.models.huggingface import is_transformer

    columns, source = (text, label, split), None
    audited: Any = model
    is_pretrained = is_transformer(model)
    if is_pretrained or Path(model).exists():
        for name, given in (("--config", config), ("--vectors", vectors), ("--quick", quick)):
            if given:
                raise InputError(f"{model} is trained already; {name} is for training.")
    if is_pretrained:
        audited = load(model, device, site=site, long=long, allows_remote_code=trust_remote_code)
        places = (corpus, data, columns, data_root, seed, out, text2)
        opened, out = for_transformer(audited, *places)
    elif Path(model).exists():
        opened, out = for_run(Path(model), corpus, data, columns, data_root, seed, out, text2)
    else:
        source = source_named(corpus, data, columns, data_root, seed, quick, text2)
        opened = open_to_train(source)
        out = out or place(model, source.name, seed, quick)
    result = audit_job(
        audited,
        opened,
        out,
        settings=settings_named(config, quick),
        vectors=vectors,
        documents=documents,
        seed=seed,
        device=device,
        is_deterministic=deterministic,
        source=source,
        site=site,
        show=True,
    )
    if json:
        return print_json(result.to_json())
    from heedful.report.console import print_verdict
    from heedful.report.quality import in_words

    said = in_words(result.quality)
    page = str(result.report)
    print_verdict(result.verdict.to_json(), result.documents, page, said, result.outside)
    return None
