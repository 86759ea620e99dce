"""Convolves arrays with wgconv and compares the results with NumPy's.

    python3 examples/numpy_check.py [COMMAND...]

COMMAND runs wgconv (default `wgconv`). Exits with 1 if a result is wrong.
"""
import subprocess
import sys
import tempfile

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

COMMAND = sys.argv[1:] or ["wgconv"]


def wgconv(folder, *options):
    subprocess.run([*COMMAND, "conv", *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def convolve(x, w, stride, padding):
    """In doubles: x is [N, C, H, W], w [K, C, R, S], padding (top, left, bottom, right)."""
    top, left, bottom, right = padding
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwrs,kcrs->nkhw", windows, w.astype(np.float64), optimize=True)


def check(name, result, expected):
    assert result.shape == expected.shape, f"{name}: {result.shape} in place of {expected.shape}"
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    print(f"{name}: relative L2 error {error:.2e}")
    return error < 1e-5


rng = np.random.default_rng(1)
x = rng.standard_normal((2, 6, 15, 14)).astype(np.float32)
w = rng.standard_normal((5, 6, 3, 4)).astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/w.npy", w)
    files = ["--input", "x.npy", "--filter", "w.npy", "--output", "y.npy", "--force"]
    right = []

    wgconv(folder, *files, "--stride", "2", "--padding", "1")
    y = np.load(f"{folder}/y.npy")
    right.append(check("stride 2, padding 1", y, convolve(x, w, 2, (1, 1, 1, 1))))

    # One archive for all: the result becomes a member of it.
    np.savez(f"{folder}/all.npz", x=x, w=w)
    members = ["--input", "all.npz:x", "--filter", "all.npz:w", "--output", "all.npz:y"]
    wgconv(folder, *members, "--stride", "2")
    y = np.load(f"{folder}/all.npz")["y"]
    right.append(check("an archive, stride 2", y, convolve(x, w, 2, (0, 0, 0, 0))))

    # Even filters have the odd zero behind the last element.
    wgconv(folder, *files, "--padding", "same")
    y = np.load(f"{folder}/y.npy")
    right.append(check("padding same", y, convolve(x, w, 1, (1, 1, 1, 2))))

    # Channels innermost, as nhwc has them; filters go with it, K R S C.
    np.save(f"{folder}/x.npy", np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
    np.save(f"{folder}/w.npy", np.ascontiguousarray(w.transpose(0, 2, 3, 1)))
    wgconv(folder, *files, "--layout", "nhwc", "--padding", "valid")
    y = np.load(f"{folder}/y.npy").transpose(0, 3, 1, 2)
    right.append(check("nhwc, no padding", y, convolve(x, w, 1, (0, 0, 0, 0))))

sys.exit(0 if all(right) else 1)
