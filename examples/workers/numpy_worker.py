"""Convolutions and matrix products in NumPy, for `wgconv verify --worker`.

    wgconv verify --worker 'python3 examples/workers/numpy_worker.py' --random 100
    wgconv verify --worker 'python3 examples/workers/numpy_worker.py --fault flipped' --random 20

--fault NAME computes something wrong (faults.py), to see what is found of it.
"""
import sys
import time
from types import SimpleNamespace

import numpy as np

from protocol import load, save, serve

# Axes of a layout: letter i is canonical axis ORDER.index(letter).
AXES = {"nchw": "nc*", "nhwc": "n*c", "chwn": "c*n", "kcrs": "nc*", "krsc": "n*c", "crsk": "c*n"}


def order(layout, rank):
    """Canonical axes as they lie in memory."""
    spatial = list(range(2, rank + 2))
    return [axis for word in AXES[layout] for axis in {"n": [0], "c": [1], "*": spatial}[word]]


def to_canonical(array, layout):
    return np.transpose(array, np.argsort(order(layout, array.ndim - 2)))


def from_canonical(array, layout):
    return np.ascontiguousarray(np.transpose(array, order(layout, array.ndim - 2)))


def erf(x):
    """NumPy has none; Python's takes one number."""
    from math import erf as one

    return np.vectorize(one, otypes=[x.dtype])(x)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "leaky-relu": lambda x: np.where(x < 0, x * x.dtype.type(0.01), x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "gelu": lambda x: x * (erf(x / np.sqrt(x.dtype.type(2))) + 1) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def padded(x, p, mode="constant"):
    """Zeros around images; what no filter reaches is cut off."""
    ends = [max(0, end) for end in p.padding_end]
    x = np.pad(x, [(0, 0), (0, 0), *zip(p.padding_begin, ends)], mode=mode)
    cut = [size + begin + end for size, begin, end in zip(p.input_size, p.padding_begin, p.padding_end)]
    return x[(..., *(slice(0, size) for size in cut))]


def places(tap, p):
    """Where a tap of the filter meets padded images."""
    steps = zip(tap, p.dilation, p.stride, p.output_size)
    return (..., *(slice(t * d, t * d + s * (o - 1) + 1, s) for t, d, s, o in steps))


def grouped(array, p, axis):
    """A channel axis as groups and their channels."""
    shape = list(array.shape)
    shape[axis : axis + 1] = [p.groups, shape[axis] // p.groups]
    return array.reshape(shape)


def taps(p):
    return np.ndindex(*p.filter_size)


def forward(p, x, w, pad_mode="constant", matmul=np.matmul):
    x = padded(x, p, pad_mode)
    w = grouped(w, p, 0)
    y = 0
    for tap in taps(p):
        part = grouped(x[places(tap, p)].reshape(p.batch, p.in_channels, -1), p, 1)
        y = y + matmul(w[(..., *tap)], part)
    return y.reshape(p.batch, p.out_channels, *p.output_size)


def backward_data(p, dy, w, matmul=np.matmul):
    reach = [max(size + begin + end, 1) for size, begin, end in zip(p.input_size, p.padding_begin, p.padding_end)]
    dx = np.zeros((p.batch, p.in_channels, *reach), dy.dtype)
    dy = grouped(dy.reshape(p.batch, p.out_channels, -1), p, 1)
    w = grouped(w, p, 0)
    for tap in taps(p):
        part = matmul(np.swapaxes(w[(..., *tap)], -1, -2), dy)
        dx[places(tap, p)] += part.reshape(p.batch, p.in_channels, *p.output_size)
    result = np.zeros((p.batch, p.in_channels, *p.input_size), dx.dtype)
    inner = [min(size, whole - begin) for size, whole, begin in zip(p.input_size, reach, p.padding_begin)]
    result[(..., *(slice(0, size) for size in inner))] = dx[
        (..., *(slice(begin, begin + size) for begin, size in zip(p.padding_begin, inner)))
    ]
    return result


def backward_filter(p, x, dy, pad_mode="constant", matmul=np.matmul):
    x = padded(x, p, pad_mode)
    dw = np.zeros((p.out_channels, p.in_channels // p.groups, *p.filter_size), x.dtype)
    # Sums go over images and places: [groups, channels, N * P].
    rows = lambda one, channels: np.moveaxis(
        grouped(one.reshape(p.batch, channels, -1), p, 1), 0, 2
    ).reshape(p.groups, channels // p.groups, -1)
    dy = rows(dy, p.out_channels)
    for tap in taps(p):
        part = rows(x[places(tap, p)], p.in_channels)
        dw[(..., *tap)] = matmul(dy, np.swapaxes(part, -1, -2)).reshape(dw.shape[:2])
    return dw


def convolve(p, operands, pad_mode="constant", matmul=np.matmul):
    """A convolution or gradient of canonical operands: images [N, C, ...], filters [K, C/g, ...]."""
    if p.op == "bwd-data":
        return backward_data(p, operands["grad_output"], operands["filter"], matmul)
    if p.op == "bwd-filter":
        return backward_filter(p, operands["input"], operands["grad_output"], pad_mode, matmul)
    y = forward(p, operands["input"], operands["filter"], pad_mode, matmul)
    if "bias" in operands:
        y = y + operands["bias"].reshape(-1, *[1] * len(p.filter_size))
    return ACTIVATIONS[p.activation](y)


def multiply(p, operands, matmul=np.matmul):
    """activation(alpha op(A) op(B) + beta C + bias) + residual."""
    a, b = operands["a"], operands["b"]
    a = np.swapaxes(a, -1, -2) if p.transpose[0] == "t" else a
    b = np.swapaxes(b, -1, -2) if p.transpose[1] == "t" else b
    y = matmul(a, b) * a.dtype.type(p.alpha)
    if "c" in operands:
        y = y + operands["c"] * a.dtype.type(p.beta)
    if "bias" in operands:
        y = y + (operands["bias"][:, None] if p.bias_side == "row" else operands["bias"])
    return ACTIVATIONS[p.activation](y) + operands.get("residual", a.dtype.type(0))


def compute(p, operands, **how):
    return multiply(p, operands, **how) if p.op == "gemm" else convolve(p, operands, **how)


NAMES = ["input", "filter", "grad_output", "bias", "a", "b", "c", "residual"]


def answer(request, run):
    """Reads operands, computes with run(p, operands), writes the result."""
    p = SimpleNamespace(**request)
    sums = np.int32 if p.dtype == "i8" else np.float32
    operands = {name: load(request[name], p.dtype).astype(sums) for name in NAMES if name in request}
    if p.op != "gemm":
        layouts = {"input": p.layout, "grad_output": p.layout, "filter": p.filter_layout}
        operands = {
            name: to_canonical(array, layouts[name]) if name in layouts else array
            for name, array in operands.items()
        }
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        result = run(p, operands)
    microseconds = (time.perf_counter() - start) * 1e6
    if p.op != "gemm":
        result = from_canonical(result, p.filter_layout if p.op == "bwd-filter" else p.layout)
    save(p.output, result, p.dtype)
    return microseconds


if __name__ == "__main__":
    run = compute
    if "--fault" in sys.argv:
        from faults import FAULTS

        name = sys.argv[sys.argv.index("--fault") + 1]
        run = FAULTS.get(name) or sys.exit(f"error: there is no fault {name}, only {', '.join(FAULTS)}")
    serve(lambda request: answer(request, run))
