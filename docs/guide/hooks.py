"""What mkdocs does not do by itself: pages of audits and methods, notebooks, formulas, links.

An audit's or a method's page is made of the registry (its question, its sentence) and of
`audits.toml` and `methods.toml` (what it means, formula, how to read it, when not to trust it).
Formulas become MathML, which browsers draw without a script.
"""

from __future__ import annotations

import html
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

GUIDE = Path(__file__).parent
DOCS = GUIDE.parent
PAGE = "page.html"
"""What the page of a study is called in the guide."""
OTHER_QUESTIONS = {
    "words": "Which words have the highest scores, and do attention and class association agree?",
    "lexicon": "Does importance follow what people feel about words?",
    "heads": "Does a head of a Transformer specialise in words of a kind?",
}
"""What is asked by jobs of their own and is no audit of every document."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made of data."""
    for name, text in {**audit_pages(), **method_pages(), **tutorials()}.items():
        files.append(File.generated(config, name, content=text))
    # A folder of results has a README and a page of its own, and mkdocs calls both index.html.
    for page in sorted((DOCS / "results").glob("*/index.html")):
        name = f"results/{page.parent.name}/{PAGE}"
        files.append(File.generated(config, name, abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to files of the repository that are not in the guide become plain names."""
    markdown = re.sub(
        r"(\]\((?:\.\./)*(?:results/\w+/)?)index\.html(?=[)#])", rf"\1{PAGE}", markdown
    )
    outside = r"\[([^\]]+)\]\(((?:\.\./)+(?:src|tests|benchmarks|README|CONTRIBUTING)[^)]*)\)"
    return re.sub(outside, r"`\1`", markdown)


def audit_pages() -> dict[str, str]:
    """One page per audit, and their index."""
    from heedful.audits import AUDITS

    told = read_toml("audits.toml")
    asked = {one.name: (one.title, one.question) for one in AUDITS.values()}
    asked |= {name: (name.capitalize(), text) for name, text in OTHER_QUESTIONS.items()}
    pages = {
        f"guide/audits/{name}.md": page_of(
            title, f"**{question}**", told[name], picture_of(f"audits/{name}.svg", title)
        )
        for name, (title, question) in asked.items()
    }
    rows = [f"| [{name}]({name}.md) | {question} |" for name, (_, question) in asked.items()]
    lines = ["# The audits", "", "| audit | asks |", "|---|---|", *rows]
    return pages | {"guide/audits/index.md": "\n".join(lines)}


def method_pages() -> dict[str, str]:
    """One page per importance method, and their index with the same text by each."""
    from heedful.importance import METHODS

    told = read_toml("methods.toml")
    example = json.loads((GUIDE / "example.json").read_text("utf-8"))
    drawn = {name: strip_of(example, name) for name in METHODS}
    files = {name: name.replace(" ", "-") for name in METHODS}
    pages = {
        f"guide/methods/{files[name]}.md": page_of(
            f"`{name}`", f"**{method.sentence}**", told[name], drawn[name]
        )
        for name, method in METHODS.items()
    }
    rows = [f"| [`{name}`]({files[name]}.md) | {METHODS[name].sentence} |" for name in METHODS]
    lines = ["# The importance methods", "", "| method | says |", "|---|---|", *rows, ""]
    lines += ["## One text by all of them", ""]
    lines += [f"`{name}`\n\n{strip}\n" for name, strip in drawn.items() if strip]
    return pages | {"guide/methods/index.md": "\n".join(lines)}


def page_of(title: str, first: str, told: Mapping[str, str], picture: str) -> str:
    """A page with the same parts for all."""
    parts = [f"# {title}", first, told.get("means", "")]
    parts += ["## Formula", formula(told["formula"])]
    parts += ["## Picture", picture] if picture else []
    parts += ["## How to read it", told["read"], "## When not to trust it", told["distrust"]]
    parts += [f"*{told['reference']}*"] if told["reference"] else []
    return "\n\n".join(part for part in parts if part)


def formula(latex: str) -> str:
    """The formula as MathML."""
    return f'<div class="formula">{convert(latex, display="block")}</div>'


def picture_of(file: str, title: str) -> str:
    """A picture beside this file, if there is one."""
    if not (GUIDE / "pictures" / file).is_file():
        return ""
    return f"![{title}: a small model on the planted corpus](../pictures/{file})"


def strip_of(example: Mapping[str, Any], name: str) -> str:
    """The words of the example by a method: teal speaks for the decision, ochre against it."""
    importance: Sequence[float] | None = example["importance"].get(name)
    if importance is None:
        return ""
    largest = max(map(abs, importance)) or 1.0
    words = []
    for word, value in zip(example["units"], importance, strict=True):
        colour = "12, 106, 114" if value >= 0 else "201, 98, 47"
        shade = f"background: rgba({colour}, {abs(value) / largest * 0.7:.2f})"
        words.append(f'<span style="{shade}" title="{value:.3g}">{html.escape(word)}</span>')
    return f'<p class="words">{" ".join(words)}</p>'


def tutorials() -> dict[str, str]:
    """Every notebook as a page."""
    return {
        f"tutorials/{file.stem}.md": page_of_notebook(file)
        for file in sorted((DOCS / "tutorials").glob("*.ipynb"))
    }


def page_of_notebook(file: Path) -> str:
    """The notebook's cells as Markdown; outputs as it was last run."""
    notebook = json.loads(file.read_text("utf-8"))
    parts = [f"[Open this page as a notebook]({file.name})"]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [shown for output in cell["outputs"] if (shown := output_of(output))]
    # The notebook's own title comes first.
    parts[0], parts[1] = parts[1], parts[0]
    return "\n\n".join(parts)


def output_of(output: Mapping[str, Any]) -> str:
    """One output of a cell, as HTML where it has some."""
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def read_toml(name: str) -> dict[str, dict[str, str]]:
    """What was written about each."""
    return tomllib.loads((GUIDE / name).read_text("utf-8"))
