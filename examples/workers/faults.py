"""Faults of kernels, for `numpy_worker.py --fault NAME`: each computes one thing otherwise than it should."""
from types import SimpleNamespace

import numpy as np

from numpy_worker import ACTIVATIONS, compute, forward, from_canonical, to_canonical


def changed(p, **fields):
    return SimpleNamespace(**{**vars(p), **fields})


def of_operand(name, change):
    """An operand is read wrongly."""
    def run(p, operands):
        if name not in operands:
            return compute(p, operands)
        return compute(p, {**operands, name: change(operands[name].copy(), p)})
    return run


def of_result(change):
    """A right result is written wrongly."""
    def run(p, operands):
        result = np.ascontiguousarray(compute(p, operands)).copy()
        return np.ascontiguousarray(change(result, p))
    return run


def of_problem(**how):
    """The problem is taken for another one of the same result's shape."""
    def run(p, operands):
        return compute(changed(p, **{name: value(p) for name, value in how.items()}), operands)
    return run


def flat(change):
    def run(result, p):
        change(result.reshape(-1))
        return result
    return run


def spatial(array):
    return tuple(range(2, array.ndim))


def put(place, value):
    """Results at a place become a value."""
    def change(result, p):
        result[place] = value
        return result
    return change


def rows(w, p):
    """Rows and columns of the filter swapped, where they are as many."""
    return np.swapaxes(w, -1, -2) if w.ndim > 3 and w.shape[-1] == w.shape[-2] else w


def tap(index, factor):
    def change(w, p):
        w[(..., *[index] * (w.ndim - 2))] *= np.float32(factor)
        return w
    return change


def middle(w, p):
    w[(..., *[size // 2 for size in w.shape[2:]])] *= 2
    return w


def first_group(x, p):
    """Channels of the first group for all groups."""
    each = x.shape[1] // p.groups
    return np.concatenate([x[:, :each]] * p.groups, 1)


OTHER = {"nchw": "nhwc", "nhwc": "nchw", "kcrs": "krsc", "krsc": "kcrs"}


def reread(x, lying, read):
    """A tensor in one layout, taken for one in another."""
    return to_canonical(from_canonical(x, lying).reshape(from_canonical(x, read).shape), read)


def misread(layout):
    """An operand taken for channels last where they come first, or the other way round."""
    def change(x, p):
        own = getattr(p, layout)
        return reread(x, own, OTHER[own])
    return change


def miswritten(y, p):
    own = p.filter_layout if p.op == "bwd-filter" else p.layout
    return reread(y, OTHER[own], own)


def drop_channels(keep):
    """Channels that a loop over blocks never reaches."""
    def change(x, p):
        x[:, keep(x.shape[1]):] = 0
        return x
    return change


def tf32(x, p=None):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def bf16(x, p=None):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def half(x, p=None):
    return x.astype(np.float16).astype(np.float32)


def rounded(change):
    """Operands of products rounded."""
    def run(p, operands):
        return compute(p, {name: one if name == "bias" else change(one) for name, one in operands.items()})
    return run


def half_matmul(a, b):
    """A product whose sums are rounded to f16 at each step."""
    a, b = a.astype(np.float16), b.astype(np.float16)
    total = np.float16(0)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k, None] * b[..., k, None, :]
    return total.astype(np.float32)


def half_sums(p, operands):
    return compute(p, operands, matmul=half_matmul)


def before_bias(p, operands):
    """The activation comes before the bias."""
    if "bias" not in operands:
        return compute(p, operands)
    y = forward(p, operands["input"], operands["filter"])
    return ACTIVATIONS[p.activation](y) + operands["bias"].reshape(-1, *[1] * len(p.filter_size))


def some(share, change):
    """Some results, at places that look random."""
    def run(result, p):
        places = np.random.default_rng(1).random(result.size) < share
        flat = result.reshape(-1)
        flat[places] = change(flat[places])
        return result
    return run


def one_result(change):
    return of_result(flat(lambda y: y.__setitem__(y.size // 2, change(y[y.size // 2]))))


def tail(block):
    """Results behind the last whole block of memory are never written."""
    def change(y):
        y[y.size // block * block:] = 0
    return of_result(flat(change))


def padded_with(mode):
    def run(p, operands):
        return compute(p, operands, pad_mode=mode) if p.op in ("fwd", "bwd-filter") else compute(p, operands)
    return run


def swapped_channels(y, p):
    pairs = y.shape[1] // 2 * 2
    y[:, :pairs] = y[:, :pairs].reshape(y.shape[0], -1, 2, *y.shape[2:])[:, :, ::-1].reshape(y[:, :pairs].shape)
    return y


FAULTS = {
    "flipped": of_operand("filter", lambda w, p: np.flip(w, spatial(w))),
    "flipped rows": of_operand("filter", lambda w, p: np.flip(w, 2)),
    "rows and columns of taps": of_operand("filter", rows),
    "first tap left out": of_operand("filter", tap(0, 0)),
    "last tap left out": of_operand("filter", tap(-1, 0)),
    "middle tap twice": of_operand("filter", middle),
    "filters in another order": of_operand("filter", lambda w, p: w[::-1]),
    "channels of filters in another order": of_operand("filter", lambda w, p: w[:, ::-1]),
    "channels of filters one off": of_operand("filter", lambda w, p: np.roll(w, 1, 1)),
    "filters in another layout": of_operand("filter", misread("filter_layout")),
    "images in another layout": of_operand("input", misread("layout")),
    "results in another layout": of_result(miswritten),
    "first group for all": of_operand("input", first_group),
    "dilation left out": of_problem(
        padding_end=lambda p: [e - (f - 1) * (d - 1) for e, f, d in zip(p.padding_end, p.filter_size, p.dilation)],
        dilation=lambda p: [1] * len(p.dilation),
    ),
    "padding on the other side": of_problem(
        padding_begin=lambda p: p.padding_end, padding_end=lambda p: p.padding_begin
    ),
    "last channel left out": of_operand("input", drop_channels(lambda c: c - 1)),
    "channels behind a multiple of 4": of_operand("input", drop_channels(lambda c: c // 4 * 4)),
    "padding one off": of_problem(
        padding_begin=lambda p: [pad + 1 for pad in p.padding_begin],
        padding_end=lambda p: [pad - 1 for pad in p.padding_end],
    ),
    "padding one off along columns": of_problem(
        padding_begin=lambda p: [*p.padding_begin[:-1], p.padding_begin[-1] + 1],
        padding_end=lambda p: [*p.padding_end[:-1], p.padding_end[-1] - 1],
    ),
    "images in another order": of_operand("input", lambda x, p: x[::-1]),
    "negative inputs clipped": of_operand("input", lambda x, p: np.maximum(x, 0)),
    "borders repeated": padded_with("edge"),
    "images wrapped": padded_with("wrap"),
    "bias left out": of_operand("bias", lambda b, p: 0 * b),
    "bias twice": of_operand("bias", lambda b, p: 2 * b),
    "bias one channel off": of_operand("bias", lambda b, p: np.roll(b, 1)),
    "bias behind the activation": before_bias,
    "activation left out": of_problem(activation=lambda p: "none"),
    "relu unasked": of_problem(activation=lambda p: "relu"),
    "all zeros": of_result(put(..., 0)),
    "last channel stale": of_result(put((slice(None), -1), 0)),
    "last image stale": of_result(put(-1, 0)),
    "last image is the first": of_result(lambda y, p: np.concatenate([y[:-1], y[:1]])),
    "last row stale": of_result(lambda y, p: put((slice(None), slice(None), -1), 0)(y, p)),
    "last column stale": of_result(put((..., -1), 0)),
    "first column stale": of_result(put((..., 0), 0)),
    "tail behind a multiple of 4": tail(4),
    "tail behind a multiple of 64": tail(64),
    "tail behind a multiple of 128": tail(128),
    "neighbouring channels swapped": of_result(swapped_channels),
    "rows reversed": of_result(lambda y, p: np.flip(y, 2)),
    "one result zero": one_result(lambda value: 0),
    "one result 1 % off": one_result(lambda value: value * np.float32(1.01)),
    "one result NaN": one_result(lambda value: np.nan),
    "one in a hundred results halved": of_result(some(0.01, lambda y: y / 2)),
    "1 % too large": of_result(lambda y, p: y * np.float32(1.01)),
    "a thousandth too large": of_result(lambda y, p: y * np.float32(1.001)),
    "negated": of_result(lambda y, p: -y),
    "magnitudes": of_result(lambda y, p: np.abs(y)),
    "a constant added": of_result(lambda y, p: y + np.float32(1e-3) * np.abs(y).mean()),
    "operands in TF32": rounded(tf32),
    "operands in bf16": rounded(bf16),
    "operands in f16": rounded(half),
    "sums in f16": half_sums,
    "results in f16": of_result(half),
    "results in bf16": of_result(bf16),
}
