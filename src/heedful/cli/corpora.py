"""`heedful corpora`: the corpora that are here, and where to get the others."""

from __future__ import annotations

from heedful.cli.options import AsJson, DataRoot, print_json


def corpora(data_root: DataRoot = None, json: AsJson = False) -> None:
    """List the corpora that are here, and where to get the others."""
    from heedful.corpora import available
    from heedful.report.console import print_corpora

    rows = available(data_root)
    if json:
        print_json(rows)
    else:
        print_corpora(rows)
