"""What the server of `forked` imports so that a killed command has nothing left to import."""

import importlib

from tests import tiny_transformers

for module in (
    "heedful.__main__", "heedful.calibration.calibrate", "heedful.calibration.mechanisms",
    "heedful.cluster.sweep", "heedful.explorer.server",
    "uvicorn.protocols.http.auto",
    "heedful.jobs.audit", "heedful.jobs.remedy", "heedful.jobs.explain", "heedful.jobs.sources",
    "heedful.report.console", "heedful.reproduction.reproduce", "heedful.reproduction.index_page",
    "heedful.studies.quicklook", "heedful.runs.threads", "matplotlib.backends.backend_svg",
    "pandas.io.parquet", "pyarrow.parquet", "sklearn.linear_model", "concurrent.futures.process",

    "importlib.readers", "importlib.resources.readers",
    "rich.progress", "rich.console", "encodings.utf_8_sig", "encodings.unicode_escape",
    "encodings.ascii", "encodings.idna", "pydantic", "PIL.features", "PIL.ImageOps",
):  # fmt: skip
    importlib.import_module(module)
tiny_transformers.reader("bert")
