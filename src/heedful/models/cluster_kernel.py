"""The LSTM of `recurrent` by clusters of a card's blocks, for documents of their own lengths too.

`cluster_kernel.cu` keeps the recurrent weights in the registers of the blocks of a cluster, eight
for 256 states, which hand their states around after every step: a step costs a few microseconds,
where a kernel that reads its weights anew each time (`wide_kernel`) takes tens. It is compiled by
the NVRTC that comes with torch, on first use; cards without clusters (before sm_90) have none.

Products are in TF32, rounded to nearest, sums in one order: neither the card nor the number of
models changes a number.
"""

from __future__ import annotations

import ctypes
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.models.recurrent_kernel import WIDEST as NARROWEST
from heedful.models.recurrent_walk import CELLS, Walk

WIDEST = 256
"""States of the largest cluster that every card with clusters takes: eight blocks of 32."""
ROWS, THREADS = 32, 256
SOURCE = Path(__file__).with_suffix(".cu")
TOLERANCE = 3e-3
"""Relative to the norm; TF32 keeps ten bits."""
LEAST = 9, 0
"""Compute capability of the first cards with clusters."""
_FLOATS = {"walk_forward": lambda dim: 2 * ROWS * (dim + 16) + ROWS * 32,
           "walk_back": lambda dim: 2 * dim // 32 * ROWS * 36 + ROWS * 144}  # fmt: skip
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def fits(dim: int) -> bool:
    """Whether states of this width are whole blocks of a cluster."""
    return NARROWEST < dim <= WIDEST and dim % 32 == 0


class Documents:
    """Where the documents of every layer lie among its tokens, and which layers read backwards."""

    def __init__(
        self,
        first: Int[Tensor, "layer document"],
        count: Int[Tensor, "layer document"],
        turned: int,
    ) -> None:
        self.first, self.count = (x.to(torch.int32).contiguous() for x in (first, count))
        self.turned = turned


def _forward(
    gates: Tensor, hidden: Tensor, start: Tensor, states: Tensor, cells: Tensor, opened: Tensor
) -> None:
    models, batch, units, dim = cells.shape
    _launch("walk_forward", dim, models, batch,
            [gates, hidden, start, None, None, states, cells, opened],
            [models, batch * units, batch, models])  # fmt: skip


def _back(
    of_states: Tensor, of_last: Tensor, hidden: Tensor, start: Tensor, cells: Tensor,
    opened: Tensor, of_gates: Tensor, of_start: Tensor,
) -> None:  # fmt: skip
    models, batch, units, dim = cells.shape
    _launch("walk_back", dim, models, batch,
            [of_states, of_last, hidden, start, None, None, cells, opened, of_gates, of_start],
            [models, batch * units, batch, models])  # fmt: skip


CLUSTERED = Walk(_forward, _back, fits, TOLERANCE)
assert CELLS == 4, "the tensors of a walk are in the order of recurrent_walk"


class _Ragged(torch.autograd.Function):
    """States of documents without padding, from the gates of their tokens; no start, no last."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, gates: Tensor, hidden: Tensor, where: Documents
    ) -> Tensor:
        layers, tokens, _ = gates.shape
        dim, documents = hidden.shape[1], where.first.shape[1]
        gates, hidden = gates.contiguous(), hidden.contiguous()
        # Tokens that are in no document keep what is here.
        states, cells = (gates.new_zeros(layers, tokens, dim) for _ in range(2))
        opened = torch.empty_like(gates)
        _launch("walk_forward", dim, layers, documents,
                [gates, hidden, None, where.first, where.count, states, cells, opened],
                [layers, tokens, documents, where.turned])  # fmt: skip
        ctx.save_for_backward(hidden, states, cells, opened)
        ctx.where = where  # type: ignore[attr-defined]
        return states

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(
        ctx: torch.autograd.function.FunctionCtx, of_states: Tensor
    ) -> tuple[Tensor, Tensor, None]:
        hidden, states, cells, opened = ctx.saved_tensors  # type: ignore[attr-defined]
        where: Documents = ctx.where  # type: ignore[attr-defined]
        layers, tokens, dim = states.shape
        documents = where.first.shape[1]
        of_gates = torch.zeros_like(opened)
        _launch("walk_back", dim, layers, documents,
                [of_states.contiguous(), None, hidden, None, where.first, where.count, cells,
                 opened, of_gates, None],
                [layers, tokens, documents, where.turned])  # fmt: skip
        before = before_each(states, where)
        return of_gates, before.transpose(1, 2) @ of_gates, None


def before_each(
    states: Float[Tensor, "layer token dim"], where: Documents
) -> Float[Tensor, "layer token dim"]:
    """The state that each token met: that of the token read before it, 0 for a first one."""
    turned = where.turned
    found = torch.zeros_like(states)
    found[:turned, 1:] = states[:turned, :-1]
    found[turned:, :-1] = states[turned:, 1:]
    starts = where.first.long()
    starts[turned:] += where.count[turned:] - 1
    return found.scatter(1, starts[..., None].expand(-1, -1, states.shape[-1]), 0.0)


def ragged(
    gates: Float[Tensor, "layer token gate"],
    hidden: Float[Tensor, "layer dim gate"],
    where: Documents,
) -> Float[Tensor, "layer token dim"]:
    """The states of every token, 0 for tokens that belong to no document; on a card."""
    states: Tensor = _Ragged.apply(gates, hidden, where)  # type: ignore[no-untyped-call]
    return states


def _launch(
    name: str, dim: int, layers: int, documents: int, tensors: Sequence[Tensor | None],
    sizes: Sequence[int],
) -> None:  # fmt: skip
    """One walk: a cluster for each layer and 32 of its documents."""
    device = next(tensor.device for tensor in tensors if tensor is not None)
    function, context, driver = _function(name, dim, str(device))
    _checked(driver, driver.cuCtxSetCurrent(context))  # the thread of a backward pass may have none
    pointers = [ctypes.c_void_p(None if one is None else one.data_ptr()) for one in tensors]
    values = [*pointers, *map(ctypes.c_int, sizes)]
    given = (ctypes.c_void_p * len(values))(
        *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
    )
    clusters = layers * -(-documents // ROWS)
    stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
    _checked(driver, driver.cuLaunchKernel(
        function, clusters * (dim // 32), 1, 1, THREADS, 1, 1, 4 * _FLOATS[name](dim), stream,
        given, None,
    ))  # fmt: skip


@cache
def _function(
    name: str, dim: int, device: str
) -> tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.CDLL]:
    """A kernel of the compiled source, the context that it lives in, and the driver."""
    torch.zeros(1, device=device)  # so that there is a context
    capability = torch.cuda.get_device_capability(device)
    if capability < LEAST:
        raise RuntimeError(f"a card of capability {capability} has no clusters")
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    _checked(driver, driver.cuCtxGetCurrent(ctypes.byref(context)))
    code = _compiled(dim, "{}{}".format(*capability))
    _checked(driver, driver.cuModuleLoadData(ctypes.byref(module), code))
    found = driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    _checked(driver, found)
    size = 4 * _FLOATS[name](dim)
    _checked(driver, driver.cuFuncSetAttribute(function, _MOST_SHARED, size))
    return function, context, driver


@cache
def _compiled(dim: int, architecture: str) -> bytes:
    """The source for states of this width, as the card runs it."""
    compiler = _nvrtc()
    program = ctypes.c_void_p()
    made = compiler.nvrtcCreateProgram(
        ctypes.byref(program), SOURCE.read_bytes(), SOURCE.name.encode(), 0, None, None
    )
    options = [f"--gpu-architecture=sm_{architecture}".encode(), f"-DDIM={dim}".encode()]
    given = (ctypes.c_char_p * len(options))(*options)
    if made or compiler.nvrtcCompileProgram(program, len(options), given):
        size = ctypes.c_size_t()
        compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        compiler.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"{SOURCE.name} cannot be compiled: {log.value.decode()}")
    size = ctypes.c_size_t()
    compiler.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    compiler.nvrtcGetCUBIN(program, code)
    return code.raw


def _nvrtc() -> ctypes.CDLL:
    """The compiler that came with torch, or the system's."""
    major = (torch.version.cuda or "").split(".")[0]
    site = Path(sysconfig.get_paths()["purelib"])
    beside = sorted(Path(torch.__file__).parents[1].glob(f"nvidia/*/lib/libnvrtc.so.{major}*"))
    beside += sorted(site.glob(f"nvidia/*/lib/libnvrtc.so.{major}*"))
    for name in [*map(str, beside), f"libnvrtc.so.{major}", "libnvrtc.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RuntimeError(f"no NVRTC of CUDA {major} was found")


def _checked(driver: ctypes.CDLL, result: int) -> None:
    """Refuses an answer of the driver that is no success."""
    if result:
        told = ctypes.c_char_p()
        driver.cuGetErrorString(result, ctypes.byref(told))
        raise RuntimeError(f"CUDA says {(told.value or b'').decode()} ({result})")
