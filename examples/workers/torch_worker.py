"""Convolutions, their gradients and matrix products of PyTorch, for `wgconv verify --worker`.

    wgconv verify --worker 'python3 examples/workers/torch_worker.py --device cuda --dtype f32' --arithmetic f32-any
    wgconv verify gemm --worker 'python3 examples/workers/torch_worker.py --dtype bf16' --dtype bf16

--device   cpu (default) or cuda
--dtype    in what it computes: f32, tf32 (f32 that may be rounded to TF32), f16, bf16; default the operands' type
--no-benchmark  cuDNN takes what it guesses to be fastest; else it measures, and Winograd and FFT occur
"""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F

from protocol import serve

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--dtype", choices=["f32", "tf32", "f16", "bf16"])
parser.add_argument("--no-benchmark", action="store_true")
options = parser.parse_args()

tf32 = options.dtype == "tf32"
torch.backends.cudnn.benchmark = not options.no_benchmark
torch.backends.cudnn.allow_tf32 = tf32
torch.backends.cuda.matmul.allow_tf32 = tf32
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
torch.set_grad_enabled(False)

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
SPATIAL = {1: [2], 2: [2, 3], 3: [2, 3, 4]}
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "leaky-relu": F.leaky_relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "silu": F.silu,
}


def order(layout, rank):
    """Canonical axes as they lie in memory."""
    n, c, spatial = [0], [1], SPATIAL[rank]
    if layout in ("nchw", "kcrs"):
        return n + c + spatial
    return n + spatial + c if layout in ("nhwc", "krsc") else c + spatial + n


def load(path, dtype, layout=None):
    """An operand on the device; its axes are canonical, its memory stays as it is: channels last where the file has them so."""
    array = np.load(path)
    bf16 = array.dtype.itemsize == 2 and array.dtype.kind in "Vui"
    tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if bf16 else torch.from_numpy(array)
    if layout is not None:
        tensor = tensor.permute([int(axis) for axis in np.argsort(order(layout, tensor.ndim - 2))])
    return tensor.to(options.device).to(dtype)


def save(path, result, dtype, layout=None):
    if layout is not None:
        result = result.permute(order(layout, result.ndim - 2))
    result = result.to(DTYPES[dtype]).cpu().contiguous()
    np.save(path, (result.view(torch.int16) if dtype == "bf16" else result).numpy())


def convolution(r, dtype):
    """The function that computes a request's convolution or gradient."""
    layout, rank = r["layout"], len(r["filter_size"])
    begin, end = r["padding_begin"], r["padding_end"]
    symmetric = begin == end
    # As F.pad has it: the last axis first.
    pads = [value for pair in zip(reversed(begin), reversed(end)) for value in pair]
    padding = begin if symmetric else [0] * rank
    others = (r["stride"], padding, r["dilation"])
    read = lambda name: load(r[name], dtype, r["filter_layout"] if name == "filter" else layout)
    if r["op"] == "fwd":
        x, w = read("input"), read("filter")
        bias = load(r["bias"], dtype) if "bias" in r else None
        activation = ACTIVATIONS[r["activation"]]
        widen = (lambda x: x) if symmetric else (lambda x: F.pad(x, pads))
        return lambda: activation(CONV[rank](widen(x), w, bias, *others, r["groups"]))
    dy = read("grad_output")
    size = [size + (0 if symmetric else one + other) for size, one, other in zip(r["input_size"], begin, end)]
    back = lambda x, w, mask: torch.ops.aten.convolution_backward(
        dy, x, w, None, *others, False, [0] * rank, r["groups"], mask
    )
    if r["op"] == "bwd-data":
        w = read("filter")
        x = torch.empty([r["batch"], r["in_channels"], *size], dtype=dtype, device=options.device)
        if dy.is_contiguous(memory_format=torch.channels_last) and rank == 2:
            x = x.contiguous(memory_format=torch.channels_last)
        cut = (lambda dx: dx) if symmetric else (lambda dx: F.pad(dx, [-pad for pad in pads]))
        return lambda: cut(back(x, w, [True, False, False])[0])
    x = read("input")
    shape = [r["out_channels"], r["in_channels"] // r["groups"], *r["filter_size"]]
    w = torch.empty(shape, dtype=dtype, device=options.device)
    return lambda: back(x if symmetric else F.pad(x, pads), w, [False, True, False])[1]


def product(r, dtype):
    """The function that computes a request's matrix product."""
    a, b = load(r["a"], dtype), load(r["b"], dtype)
    a = a.mT if r["transpose"][0] == "t" else a
    b = b.mT if r["transpose"][1] == "t" else b
    activation = ACTIVATIONS[r["activation"]]
    if r["alpha"] != 1 or "c" in r or "residual" in r or r["bias_side"] == "row":
        raise NotImplementedError("torch.matmul has neither alpha, C, residual nor a bias of rows")
    if "bias" not in r:
        return lambda: activation(torch.matmul(a, b))
    if a.ndim != 2:
        raise NotImplementedError("torch.addmm takes one product")
    bias = load(r["bias"], dtype)
    return lambda: activation(torch.addmm(bias, a, b))


def timed(run):
    """The result, and the microseconds of a second call: in the first one cuDNN looks for the fastest algorithm."""
    run()
    if options.device == "cpu":
        start = time.perf_counter()
        return run(), (time.perf_counter() - start) * 1e6
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    result = run()
    end.record()
    torch.cuda.synchronize()
    return result, start.elapsed_time(end) * 1000


def compute(r):
    if r["dtype"] not in DTYPES:
        raise NotImplementedError(r["dtype"])
    dtype = DTYPES[options.dtype or r["dtype"]]
    if dtype != torch.float32 and r["activation"] not in ("none", "relu"):
        raise NotImplementedError(f"{r['activation']} of sums that are rounded before")
    gemm = r["op"] == "gemm"
    try:
        result, microseconds = timed(product(r, dtype) if gemm else convolution(r, dtype))
    except RuntimeError as error:
        if "not implemented" in str(error):
            raise NotImplementedError(str(error)) from error
        raise
    layout = None if gemm else r["filter_layout"] if r["op"] == "bwd-filter" else r["layout"]
    save(r["output"], result, r["dtype"], layout)
    return microseconds


serve(compute)
