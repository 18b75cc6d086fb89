"""Dense scatters as one picture inside the SVG, in the colour that is seen by day and night."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from jaxtyping import Float, UInt8

FINE = 200 / 72
"""Pixels for each unit of a chart."""


def painted(
    x: Float[np.ndarray, " point"],
    y: Float[np.ndarray, " point"],
    radius: float,
    colour: str,
    alpha: float,
) -> str:
    """An image element with a disc at every point; where n of them overlap, 1 − (1 − α)ⁿ shows."""
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return ""
    x, y = x[known], y[known]
    left, top = float(x.min()) - radius - 1, float(y.min()) - radius - 1
    wide = int((float(x.max()) + radius + 1 - left) * FINE) + 1
    tall = int((float(y.max()) + radius + 1 - top) * FINE) + 1
    column, row = ((x - left) * FINE).round().astype(int), ((y - top) * FINE).round().astype(int)
    reach = int(radius * FINE) + 1
    around = np.arange(-reach, reach + 1)
    down, across = np.nonzero(np.hypot(around[:, None], around[None]) <= radius * FINE)
    counts = np.zeros((tall, wide))
    rows = (row[:, None] + around[down]).clip(0, tall - 1)
    np.add.at(counts, (rows, (column[:, None] + around[across]).clip(0, wide - 1)), 1)
    image = np.empty((tall, wide, 4), dtype=np.uint8)
    image[..., :3] = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    image[..., 3] = (255 * (1 - (1 - alpha) ** counts)).round()
    said = base64.b64encode(png(image)).decode("ascii")
    return (
        f'<image x="{left:.2f}" y="{top:.2f}" width="{wide / FINE:.2f}" '
        f'height="{tall / FINE:.2f}" href="data:image/png;base64,{said}"/>'
    )


def png(image: UInt8[np.ndarray, "row column 4"]) -> bytes:
    """A picture of red, green, blue and opacity as a PNG file."""
    tall, wide, _ = image.shape
    lines = np.concatenate([np.zeros((tall, 1), np.uint8), image.reshape(tall, -1)], 1)

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", wide, tall, 8, 6, 0, 0, 0)
    body = (
        chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines.tobytes()))
        + chunk(b"IEND", b"")
    )
    return b"\x89PNG\r\n\x1a\n" + body
