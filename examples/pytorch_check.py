"""Convolves tensors with wgconv and compares results and gradients with PyTorch's.

    python3 examples/pytorch_check.py [COMMAND...]

COMMAND runs wgconv (default `wgconv`). Exits with 1 if a result is wrong.
"""
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

COMMAND = sys.argv[1:] or ["wgconv"]
torch.manual_seed(1)


def wgconv(folder, *options):
    subprocess.run([*COMMAND, "conv", *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return torch.from_numpy(np.load(f"{folder}/out.npy"))


def save(folder, **tensors):
    for name, tensor in tensors.items():
        np.save(f"{folder}/{name}.npy", tensor.detach().contiguous().numpy())


def check(name, result, expected):
    assert result.shape == expected.shape, f"{name}: {result.shape} in place of {expected.shape}"
    error = ((result.double() - expected).norm() / expected.norm()).item()
    print(f"{name}: relative L2 error {error:.2e}")
    return error < 1e-5


right = []
with tempfile.TemporaryDirectory() as folder:
    to = ["--output", "out.npy", "--force"]

    # conv2d(x, w, bias, stride=2, padding=1, dilation=(1, 2), groups=2) and its gradients.
    x = torch.randn(3, 8, 13, 15)
    w = torch.randn(6, 4, 3, 3)
    bias = torch.randn(6)
    how = dict(stride=2, padding=1, dilation=(1, 2), groups=2)
    options = ["--stride", "2", "--padding", "1", "--dilation", "1,2", "--groups", "2"]
    x64, w64 = x.double().requires_grad_(), w.double().requires_grad_()
    y = F.conv2d(x64, w64, bias.double(), **how)
    dy = torch.randn(y.shape)
    y.backward(dy.double())
    save(folder, x=x, w=w, bias=bias, dy=dy)
    got = wgconv(folder, "--input", "x.npy", "--filter", "w.npy", "--bias", "bias.npy", *options, *to)
    right.append(check("conv2d", got, y.detach()))
    data = ["--op", "bwd-data", "--grad-output", "dy.npy", "--filter", "w.npy"]
    got = wgconv(folder, *data, "--input-size", "13,15", *options, *to)
    right.append(check("its gradient of the input", got, x64.grad))
    weights = ["--op", "bwd-filter", "--input", "x.npy", "--grad-output", "dy.npy"]
    got = wgconv(folder, *weights, "--filter-size", "3,3", *options, *to)
    right.append(check("its gradient of the filter", got, w64.grad))

    # conv2d(x, w, padding="same") of channels_last tensors is nhwc with krsc filters.
    w = torch.randn(6, 8, 3, 4)
    save(folder, x=x.permute(0, 2, 3, 1), w=w.permute(0, 2, 3, 1))
    got = wgconv(
        folder, "--input", "x.npy", "--filter", "w.npy", "--layout", "nhwc", "--padding", "same", *to
    )
    expected = F.conv2d(x.double(), w.double(), padding="same")
    right.append(check("conv2d of channels_last, same", got.permute(0, 3, 1, 2), expected))

    # conv_transpose2d(x, w, stride=2, padding=1, output_padding=1) is the gradient of a convolution
    # whose filter is w and whose output is x; its result's size says the output padding.
    w = torch.randn(8, 5, 3, 3)
    expected = F.conv_transpose2d(x.double(), w.double(), stride=2, padding=1, output_padding=1)
    save(folder, x=x, w=w)
    size = ",".join(str(n) for n in expected.shape[2:])
    data = ["--op", "bwd-data", "--grad-output", "x.npy", "--filter", "w.npy", "--input-size", size]
    got = wgconv(folder, *data, "--stride", "2", "--padding", "1", *to)
    right.append(check("conv_transpose2d", got, expected))

    # conv1d and conv3d are the same with one spatial axis and three.
    for axes, conv in ((1, F.conv1d), (3, F.conv3d)):
        x = torch.randn(2, 3, *[9, 8, 7][:axes])
        w = torch.randn(4, 3, *[3] * axes)
        save(folder, x=x, w=w)
        got = wgconv(folder, "--input", "x.npy", "--filter", "w.npy", "--padding", "1", *to)
        right.append(check(f"conv{axes}d", got, conv(x.double(), w.double(), padding=1)))

sys.exit(0 if all(right) else 1)
