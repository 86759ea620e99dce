"""Exports networks as ONNX with random weights, for `wgconv layers`, which made the suites of their names in bench/suites.

    python3 bench/export_networks.py resnet50        # writes resnet50.onnx
    wgconv layers resnet50.onnx --batch 32

It needs PyTorch, torchvision and onnx. Batches are free.
"""

import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F


def conv(c_in, c_out, k=3, stride=1):
    """A convolution as YOLO has it."""
    layers = [nn.Conv2d(c_in, c_out, k, stride, k // 2, bias=False), nn.BatchNorm2d(c_out), nn.SiLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """U-Net with four levels and padded convolutions."""

    def __init__(self, widths=(64, 128, 256, 512, 1024)):
        super().__init__()
        pairs = list(zip((3, *widths), widths))
        self.down = nn.ModuleList(self.twice(a, b) for a, b in pairs)
        ups = list(zip(widths[:0:-1], widths[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in ups)
        self.joined = nn.ModuleList(self.twice(2 * b, b) for _, b in ups)
        self.head = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def twice(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, block, beside in zip(self.up, self.joined, kept[-2::-1]):
            x = block(torch.cat([beside, up(x)], 1))
        return self.head(x)


class C2f(nn.Module):
    """YOLOv8's block: half the channels through bottlenecks, all results joined."""

    def __init__(self, c_in, c_out, times, shortcut=True):
        super().__init__()
        half = c_out // 2
        self.shortcut = shortcut
        self.first = conv(c_in, c_out, 1)
        self.blocks = nn.ModuleList(nn.Sequential(conv(half, half), conv(half, half)) for _ in range(times))
        self.last = conv((2 + times) * half, c_out, 1)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.shortcut else y)
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """The layers of YOLOv8s for 80 classes."""

    def __init__(self, w=(32, 64, 128, 256, 512), n=(1, 2, 2, 1), classes=80):
        super().__init__()
        self.stem = conv(3, w[0], 3, 2)
        steps = zip(w, w[1:], n)
        self.stages = nn.ModuleList(nn.Sequential(conv(a, b, 3, 2), C2f(b, b, t)) for a, b, t in steps)
        self.pool_in, self.pool_out = conv(w[4], w[4] // 2, 1), conv(2 * w[4], w[4], 1)
        self.td1, self.td2 = C2f(w[4] + w[3], w[3], 1, False), C2f(w[3] + w[2], w[2], 1, False)
        self.down1, self.bu1 = conv(w[2], w[2], 3, 2), C2f(w[2] + w[3], w[3], 1, False)
        self.down2, self.bu2 = conv(w[3], w[3], 3, 2), C2f(w[3] + w[4], w[4], 1, False)
        box, cls = 64, max(w[2], min(classes, 100))
        self.box = nn.ModuleList(nn.Sequential(conv(c, box), conv(box, box), nn.Conv2d(box, 64, 1)) for c in w[2:])
        self.cls = nn.ModuleList(nn.Sequential(conv(c, cls), conv(cls, cls), nn.Conv2d(cls, classes, 1)) for c in w[2:])

    def forward(self, x):
        x = self.stem(x)
        kept = []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        p3, p4, p5 = kept[1:]
        pools = [self.pool_in(p5)]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        p5 = self.pool_out(torch.cat(pools, 1))
        up = lambda y: F.interpolate(y, scale_factor=2.0)
        t4 = self.td1(torch.cat([up(p5), p4], 1))
        t3 = self.td2(torch.cat([up(t4), p3], 1))
        b4 = self.bu1(torch.cat([self.down1(t3), t4], 1))
        b5 = self.bu2(torch.cat([self.down2(b4), p5], 1))
        return [torch.cat([b(y), c(y)], 1).flatten(2) for b, c, y in zip(self.box, self.cls, (t3, b4, b5))]


class WhisperEncoder(nn.Module):
    """Whisper base's encoder: 30 s of sound."""

    def __init__(self, width=512, heads=8, depth=6):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(80, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.places = nn.Parameter(torch.zeros(1500, width))
        self.blocks = nn.ModuleList(WhisperBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = F.gelu(self.conv2(F.gelu(self.conv1(x)))).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class WhisperBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        batch, length, width = y.shape
        q, k, v = (
            part(y).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = (q @ k.transpose(2, 3) / (width // self.heads) ** 0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def torchvision_model(name):
    from torchvision.models import get_model

    return get_model("mobilenet_v3_large" if name == "mobilenet_v3" else name, weights=None)


PICTURE = (3, 224, 224)
NETWORKS = {
    "resnet50": (torchvision_model, PICTURE),
    "mobilenet_v3": (torchvision_model, PICTURE),
    "efficientnet_b0": (torchvision_model, PICTURE),
    "convnext_tiny": (torchvision_model, PICTURE),
    "unet": (lambda _: UNet(), (3, 256, 256)),
    "yolov8s": (lambda _: Yolo(), (3, 640, 640)),
    "whisper_base": (lambda _: WhisperEncoder(), (80, 3000)),
    "r3d_18": (torchvision_model, (3, 16, 112, 112)),
}


def main(names):
    unknown = [name for name in names if name not in NETWORKS]
    if not names or unknown:
        sys.exit(f"Give some of {', '.join(NETWORKS)}; not {', '.join(unknown) or 'none'}")
    warnings.filterwarnings("ignore")
    for name in names:
        make, shape = NETWORKS[name]
        options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "N"}}, "opset_version": 17, "dynamo": False}
        torch.onnx.export(make(name).eval(), torch.randn(1, *shape), f"{name}.onnx", **options)


if __name__ == "__main__":
    main(sys.argv[1:])
