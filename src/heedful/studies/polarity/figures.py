"""Tables and figures of the polarity study (docs/studies/polarity.md, "Measures")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.audits.erasure import five_numbers
from heedful.report import panels
from heedful.report.drawing import SOFT
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Needs, Plan
from heedful.reproduction.tables import beside, row
from heedful.reproduction.view import View, Views
from heedful.statistics import over_seeds
from heedful.studies.polarity import printed as paper
from heedful.studies.polarity import steps
from heedful.studies.polarity.word_steps import Tables

Make = Callable[[Views], Made]
FAR = 3.0
"""Cells of M-T2 that differ by more points than this are named."""


def needs_grid(models: Sequence[str], *more: Callable[[Plan, str], Step[Any]]) -> Needs:
    """The grids of some models on a corpus, its token classes, and other steps."""

    def needs(plan: Plan, corpus: str) -> list[Step[Any]]:
        found: list[Step[Any]] = [steps.sizes(plan, corpus), steps.words(plan, corpus)]
        found += [steps.grid(plan, corpus, model) for model in models]
        return found + [step(plan, corpus) for step in more]

    return needs


def needs_path(model: str) -> Needs:
    """A watched SGD run."""
    return lambda plan, corpus: [
        steps.sizes(plan, corpus),
        steps.words(plan, corpus),
        steps.path(plan, corpus, model),
    ]


def needs_sizes(plan: Plan, corpus: str) -> list[Step[Any]]:
    """Counts and token classes."""
    return [steps.sizes(plan, corpus), steps.words(plan, corpus)]


def datasets(views: Views) -> Made:
    """M-T1."""

    def of(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.sizes)
        order = slice(None) if len(found["classes"]) > 2 else slice(None, None, -1)
        sizes = {s: "/".join(map(str, n[order])) for s, n in found["documents"].items()}
        facts = {"length": found["length"], "words": found["words"]}
        return [
            {"corpus": view.corpus, "classes": "/".join(found["classes"][order])} | facts | sizes
        ]

    ours = views.table(of)
    printed = paper.SIZES[paper.SIZES["corpus"].isin(ours["corpus"])]
    splits = ["train", "dev", "test"]
    table = beside(ours.drop(columns=splits), printed.drop(columns=splits), ["corpus"])
    both = ours[["corpus", *splits]].merge(printed[["corpus", *splits]], on="corpus", how="left",
                                           suffixes=("", ", paper"))  # fmt: skip
    table = table.merge(both, on="corpus")
    said = "Sizes per class, positive first; the vocabulary is that of all splits and 5 symbols."
    return Made(table, sentence=said)


def accuracy_grid(views: Views) -> Made:
    """M-T2 beside the paper's 112 numbers."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        for model in steps.MODELS:
            runs = view.of(steps.grid, model)["runs"]
            for scale in steps.SCALES:
                values = 100 * runs.loc[runs["setting"] == scale, "accuracy"]
                keys = {"corpus": view.corpus, "model": model, "λ": scale}
                spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
                yield row(keys, accuracy=over_seeds(values, 0, 100)) | {"s.d.": spread}

    ours = views.table(of)
    printed = paper.accuracies()
    printed = printed[printed["corpus"].isin(ours["corpus"])]
    table = beside(ours, printed, ["corpus", "model", "λ"])
    shown = table.pivot_table(
        index=["corpus", "λ"], columns="model", values="accuracy", sort=False
    ).reset_index()
    return Made(table, partial(_grid_figure), _distance(table), shown=_rounded(shown, table))


def _distance(table: pd.DataFrame) -> str:
    if "accuracy, difference" not in table or not table["accuracy, difference"].notna().any():
        return "Mean test accuracy over seeds; the paper has no numbers for these corpora."
    known = table[table["accuracy, difference"].notna()]
    apart = known["accuracy, difference"]
    far = known[apart.abs() > FAR]
    named = ", ".join(
        f"{r['corpus']} {steps.TITLES[r['model']]} λ={r['λ']} ({r['accuracy, difference']:+.1f})"
        for _, r in far.iterrows()
    )
    return (
        f"{len(known)} cells beside the paper's: mean absolute difference "
        f"{apart.abs().mean():.2f} points (mean {apart.mean():+.2f}); {len(far)} cells are more "
        f"than {FAR:g} points off" + (f": {named}." if named else ".")
    )


def _rounded(shown: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """A row per corpus and λ: ours, the paper's in brackets."""
    cells = {(r["corpus"], r["λ"], r["model"]): r for r in table.to_dict("records")}
    for model in steps.MODELS:
        found = []
        for corpus, scale in zip(shown["corpus"], shown["λ"], strict=True):
            cell = cells[corpus, scale, model]
            printed = cell.get("accuracy, paper", np.nan)
            text = f"{cell['accuracy']:.1f}"
            found.append(text if pd.isna(printed) else f"{text} ({printed:.1f})")
        shown[model] = found
    return shown[["corpus", "λ", *steps.MODELS]].rename(columns=steps.TITLES)


def _grid_figure(table: pd.DataFrame) -> Any:
    wide = table.assign(column=table["model"].map(steps.TITLES))
    return panels.heatmap(wide, x="column", y="λ", value="accuracy", panel="corpus", digits=1)


def token_counts(views: Views) -> Made:
    """S-T1: how many words each class has, with a sample."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        table = view.of(steps.words)
        names = [*steps.class_names(view), "neutral"]
        for name in names:
            members = table[table["kind"] == name]
            sample = members["word"].iloc[:: max(len(members) // 10, 1)].head(10)
            said = " ".join(sample) or "none: the class has no word"
            keys = {"corpus": view.corpus, "class": name}
            yield keys | {"words": len(members), "sample": said}

    ours = views.table(of)
    printed = paper.CLASSES[paper.CLASSES["corpus"].isin(ours["corpus"])]
    table = beside(ours, printed, ["corpus", "class"])
    return Made(table, sentence="Classes from occurrences in training texts; γ = ±1 is included.")


def _grid(view: View, model: str) -> Tables:
    return view.of(steps.grid, model)


def scatter(
    model: str,
    scales: Sequence[str],
    columns: Mapping[str, str],
    trained: Callable[[View, str], Tables] = _grid,
) -> Make:
    """Scores of every classed word of the first seed against its frequency rank."""

    def make(views: Views) -> Made:
        def of(view: View) -> Iterator[dict[str, Any]]:
            for scale in scales:
                table = trained(view, model)["words"]
                table = table[(table["setting"] == scale) & (table["seed"] == view.seeds[0])]
                table = steps.with_classes(view, table)
                table = in_order(view, table)
                for column, title in columns.items():
                    if column not in table:
                        continue
                    place = f"{view.corpus}, λ={scale}" if len(scales) > 1 else view.corpus
                    panel = f"{place}: {title}"
                    shown = table[["id", column, "kind", "word"]]
                    for index, score, kind, word in shown.itertuples(index=False):
                        keys = {"panel": panel, "token index": index, "score": score}
                        yield keys | {"class": kind, "word": word}

        table = views.table(of)
        return Made(table, points, class_means(table))

    return make


def in_order(view: View, table: pd.DataFrame) -> pd.DataFrame:
    """The classed words, the positive (or first) class first, so that colours keep meaning."""
    names = steps.class_names(view)
    names = names[::-1] if len(names) == 2 else names
    return pd.concat([table[table["kind"] == name] for name in (*names, "neutral")])


def points(table: pd.DataFrame) -> Any:
    """Scores against token index, coloured by class."""
    return panels.scatter(
        table, x="token index", y="score", hue="class", panel="panel", zero=True, share=False
    )


def class_means(table: pd.DataFrame) -> str:
    """The sentence under a scatter."""
    means = table.groupby(["panel", "class"], sort=False)["score"].mean()
    parts = [
        f"{panel}: "
        + ", ".join(f"{name} {value:+.2f}" for name, value in found.droplevel(0).items())
        for panel, found in means.groupby(level=0, sort=False)
    ]
    return "Class means. " + "; ".join(parts) + "."


def components(views: Views) -> Made:
    """S-F25 to 27: the polarity components of each class's words, DP-A, λ = 10."""

    def of(view: View) -> list[dict[str, Any]]:
        classes = steps.class_names(view)
        table = steps.token_table(view, "dp-a", "10")
        table = table[(table["seed"] == view.seeds[0]) & table["kind"].isin(classes)]
        return [
            {"panel": f"words of {_short(name)}", "token index": number, "score": value,
             "class": f"score of {_short(other)}", "word": word}
            for name in classes
            for k, other in enumerate(classes)
            for number, (value, word) in enumerate(
                table.loc[table["kind"] == name, [f"polarity {k}", "word"]].itertuples(index=False)
            )
        ]  # fmt: skip

    table = views.table(of)
    return Made(table, points, class_means(table) if len(table) else "")


def weights(views: Views) -> Made:
    """M-F5: average attention weights of words in test texts; words beyond the whiskers by name."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        table = view.of(steps.grid, "dp")["weights"]
        table = table[table["seed"] == view.seeds[0]].rename(columns={"word": "id"})
        table = steps.with_classes(view, table)
        for name in (*steps.class_names(view)[::-1], "neutral"):
            members = table[table["kind"] == name]
            box = five_numbers(members["weight"].to_numpy())
            keys = {"corpus": view.corpus, "class": name}
            yield keys | box
            if box["low"] is None or box["high"] is None:
                continue
            beyond = (members["weight"] < box["low"]) | (members["weight"] > box["high"])
            yield from (
                keys | {"outlier": weight, "word": word}
                for weight, word in members.loc[beyond, ["weight", "word"]].itertuples(index=False)
            )

    table = views.table(of)
    medians = [f"{r['class']} {r['median']:.3f}" for _, r in table.iterrows() if r["n"] > 0]
    said = f"Medians: {', '.join(medians)}."
    if "outlier" in table and table["outlier"].notna().any():
        top = table.dropna(subset="outlier").sort_values("outlier").iloc[-1]
        said += f" The largest weight has “{top['word']}” ({top['class']}): {top['outlier']:.2f}."
    return Made(table, _weight_boxes, said)


def _weight_boxes(table: pd.DataFrame) -> Any:
    figure = panels.boxes(table, x="class", hue="corpus", label="mean weight", limits=None)
    if "outlier" in table:
        corpora, classes = (list(dict.fromkeys(table[c])) for c in ("corpus", "class"))
        beyond = table[table["outlier"].notna()]
        shift = {name: 0.8 * ((k + 0.5) / len(corpora) - 0.5) for k, name in enumerate(corpora)}
        places = [classes.index(r["class"]) + shift[r["corpus"]] for _, r in beyond.iterrows()]
        figure.axes[0].plot(places, beyond["outlier"], ".", color=SOFT, markersize=3)
    return figure


def _short(name: str) -> str:
    """The end of a newsgroup's name, which fits above a panel: `guns`."""
    return name.rpartition(".")[2]


def penalty(views: Views) -> Made:
    """M-X: class means of attention scores and accuracy at λ = 100 with and without penalty."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        without = view.of(steps.grid, "dp")["runs"]
        runs = {"without": without[without["setting"] == "100"]}
        runs["with"] = view.of(steps.penalised)["runs"]
        for name, table in runs.items():
            columns = [c for c in table if str(c).startswith("attention/")]
            measured = {str(c): over_seeds(table[c]) for c in columns}
            measured |= {"V·W": over_seeds(table["V·W last"])}
            measured |= {"accuracy": over_seeds(100 * table["accuracy"], 0, 100)}
            yield row({"corpus": view.corpus, "penalty": name}, **measured)

    table = views.table(of)
    return Made(table, sentence="λ = 100, μ = 1e-4: means over seeds with Student's intervals.")
