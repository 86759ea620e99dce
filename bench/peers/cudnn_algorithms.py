"""
cuDNN's convolution algorithms, each called by itself: the functions of cudnn_cnn.h (cuDNN 8 and 9) through ctypes,
on tensors of PyTorch.
"""
import ctypes
import functools
import pathlib

import torch

from records import Unsupported

#: By the numbers of cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t and cudnnConvolutionBwdFilterAlgo_t.
ALGORITHMS = {
    "fwd": ["implicit-gemm", "implicit-precomp-gemm", "gemm", "direct", "fft", "fft-tiling",
            "winograd", "winograd-nonfused"],
    "bwd-data": ["algo-0", "algo-1", "fft", "fft-tiling", "winograd", "winograd-nonfused"],
    "bwd-filter": ["algo-0", "algo-1", "fft", "algo-3", "winograd", "winograd-nonfused",
                   "fft-tiling"],
}

#: cudnnDataType_t, cudnnTensorFormat_t, cudnnConvolutionMode_t.
FLOAT, HALF = 0, 2
NCHW, NHWC = 0, 1
CROSS_CORRELATION = 1
#: cudnnMathType_t: f32 of plain multiply-adds, TF32 where the default allows it, tensor cores for f16.
MATH = {"f32": 3, "tf32": 0, "f16": 1}


def names():
    """Of all operations."""
    return sorted({name for algorithms in ALGORITHMS.values() for name in algorithms})


def of_operation(op, wanted):
    """Those of an operation that are asked for, in cuDNN's order."""
    return [name for name in ALGORITHMS[op] if name in wanted]


@functools.cache
def library():
    """cuDNN as PyTorch has loaded it, or brings it."""
    root = pathlib.Path(torch.__file__).parent
    folders = ["", f"{root.parent}/nvidia/cudnn/lib/", f"{root}/lib/"]
    for version in (9, 8):
        for folder in folders:
            try:
                return ctypes.CDLL(f"{folder}libcudnn.so.{version}")
            except OSError:
                pass
    raise RuntimeError("Cannot find libcudnn.so of version 8 or 9")


def _call(name, *arguments):
    status = getattr(library(), name)(*arguments)
    if status != 0:
        text = library().cudnnGetErrorString
        text.restype = ctypes.c_char_p
        raise Unsupported(f"{name} says {text(status).decode()}")


@functools.cache
def _handle():
    handle = ctypes.c_void_p()
    _call("cudnnCreate", ctypes.byref(handle))
    return handle


def _ints(values):
    return (ctypes.c_int * len(values))(*values)


class Call:
    """A convolution by one algorithm, with its workspace; calling it gives the result. Raises Unsupported."""

    def __init__(self, problem, op, algorithm, dtype):
        self._destroy = []
        self._op = op
        self._algorithm = ctypes.c_int(ALGORITHMS[op].index(algorithm))
        try:
            self._describe(problem, op, dtype)
        except Exception:
            self.__exit__()
            raise

    def _describe(self, problem, op, dtype):
        element = HALF if problem.x.dtype == torch.float16 else FLOAT
        x, y = self._tensor(problem.x, element), self._tensor(problem.dy, element)
        w = self._filter(problem.w, element, NHWC if problem.layout == "nhwc" else NCHW)
        conv = self._make("ConvolutionDescriptor")
        _call("cudnnSetConvolutionNdDescriptor", conv, ctypes.c_int(len(problem.stride)),
              _ints(problem.padding), _ints(problem.stride), _ints(problem.dilation),
              ctypes.c_int(CROSS_CORRELATION), ctypes.c_int(FLOAT))
        _call("cudnnSetConvolutionGroupCount", conv, ctypes.c_int(problem.groups))
        _call("cudnnSetConvolutionMathType", conv, ctypes.c_int(MATH[dtype]))
        one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
        # The result lies as the tensor does whose gradient it is, or the output's gradient.
        self._result = torch.empty_like({"fwd": problem.dy, "bwd-data": problem.x}.get(op, problem.w))
        operands = {
            "fwd": ("Forward", [(x, problem.x), (w, problem.w)], y),
            "bwd-data": ("BackwardData", [(w, problem.w), (y, problem.dy)], x),
            "bwd-filter": ("BackwardFilter", [(x, problem.x), (y, problem.dy)], w),
        }
        name, inputs, result = operands[op]
        size = ctypes.c_size_t()
        _call(f"cudnnGetConvolution{name}WorkspaceSize", _handle(),
              *(descriptor for descriptor, _ in inputs), conv, result, self._algorithm,
              ctypes.byref(size))
        self.workspace_bytes = size.value
        self._workspace = torch.empty(max(1, size.value), dtype=torch.uint8, device="cuda")
        pointers = [part for descriptor, tensor in inputs for part in (descriptor, _pointer(tensor))]
        self._name = f"cudnnConvolution{name}"
        self._arguments = [_handle(), one, *pointers, conv, self._algorithm,
                           _pointer(self._workspace), size, zero, result, _pointer(self._result)]

    def _make(self, kind):
        made = ctypes.c_void_p()
        _call(f"cudnnCreate{kind}", ctypes.byref(made))
        self._destroy.append((f"cudnnDestroy{kind}", made))
        return made

    def _tensor(self, tensor, element):
        made = self._make("TensorDescriptor")
        _call("cudnnSetTensorNdDescriptor", made, ctypes.c_int(element), ctypes.c_int(tensor.dim()),
              _ints(tensor.shape), _ints(tensor.stride()))
        return made

    def _filter(self, tensor, element, layout):
        made = self._make("FilterDescriptor")
        _call("cudnnSetFilterNdDescriptor", made, ctypes.c_int(element), ctypes.c_int(layout),
              ctypes.c_int(tensor.dim()), _ints(tensor.shape))
        return made

    def __call__(self):
        # A graph is captured on a stream of its own.
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _call("cudnnSetStream", _handle(), stream)
        _call(self._name, *self._arguments)
        return self._result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name, descriptor in reversed(self._destroy):
            getattr(library(), name)(descriptor)


def _pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())
