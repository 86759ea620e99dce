"""The protocol of `wgconv verify --worker`: a request a line on stdin, an answer a line on stdout, both JSON."""
import json
import os
import sys

import numpy as np


def load(path, dtype):
    """An operand; bf16 becomes float32, which holds it."""
    array = np.load(path)
    if dtype != "bf16" or array.dtype != np.dtype("V2"):
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def bf16_bits(values):
    """float32 as the bits of bf16, rounded to even."""
    values = np.ascontiguousarray(values, np.float32)
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def save(path, values, dtype):
    """Writes a result in the type of its operands, products of i8 in int32."""
    stored = {"f32": np.float32, "f16": np.float16, "i8": np.int32}
    np.save(path, bf16_bits(values) if dtype == "bf16" else values.astype(stored[dtype], copy=False))


def serve(compute):
    """Answers requests: compute(request) writes request["output"] and gives microseconds, or None."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What libraries print is no answer.
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"output": request["output"], "time_us": compute(request)}
        except NotImplementedError as error:
            answer = {"unsupported": str(error)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
