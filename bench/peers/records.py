"""What the peers' scripts share: timing, errors, and the records that wgconv's report and compare read."""
import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import time

import torch


#: Time that the calls of a sample fill, as wgconv bench has it.
FILL_MS = 5
SEED = 1


def arguments(doc, dtypes):
    """The options of both scripts, for each to add its own."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suite", nargs="+", help="suite files, as wgconv bench --suite reads them")
    parser.add_argument("--dtype", choices=dtypes, default="f32", help="tf32: f32 with TF32 on")
    parser.add_argument("--match", default="", help="only problems whose descriptor and name it matches")
    parser.add_argument("--runs", type=int, default=15, help="timed samples")
    parser.add_argument("--warm-up", type=float, default=0.6,
                        help="seconds of calls before the samples, which wake an idle device")
    parser.add_argument("--check", choices=["sample", "none"], default="sample",
                        help="errors against float64: of large results of a part; none only times")
    parser.add_argument("--device", choices=["cuda", "cpu"],
                        default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def prepare(options):
    """Sets PyTorch's switches and its seed; the element type of operands."""
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("Cannot measure on cuda: PyTorch finds no GPU, --device cpu needs none")
    if options.device == "cpu" and options.dtype == "tf32":
        raise SystemExit("Cannot measure tf32 on the CPU: GPUs have it")
    torch.manual_seed(SEED)
    torch.backends.cudnn.allow_tf32 = options.dtype == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = options.dtype == "tf32"
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8}
    return types.get(options.dtype, torch.float32)


def provider(library, device):
    """What the records are of: the library on a GPU, PyTorch on the CPU."""
    return library if device == "cuda" else "pytorch"


def print_environment(library, version, device):
    """The first line of the records: where they are made, and by what."""
    cuda = device == "cuda"
    versions = [version] if cuda and version else []
    print_record({
        "schema": 1,
        "kind": "environment",
        "program": provider(library, device),
        "version": ", ".join([*versions, f"PyTorch {torch.__version__}"]),
        "os": f"{platform.system().lower()} {platform.machine()}",
        "backend": f"CUDA {torch.version.cuda}" if cuda else "cpu",
        "adapter": device_name(device),
        "driver": _driver() if cuda else "",
        "seed": SEED,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
    })


def device_name(device):
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU ({torch.get_num_threads()} threads)"


def _driver():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def print_record(record):
    """Prints a line as soon as it is known."""
    print(json.dumps(record, separators=(",", ":")), flush=True)


def print_cases(options, library, version, cases):
    """
    Prints the records of cases and exits, with 1 where none was timed. A case is a problem, its operation, other fields of its
    record, and what gives its time, error and workspace. Where that raises RuntimeError, as PyTorch does for what it
    cannot compute, the case did not run to its end.
    """
    print_environment(library, version, options.device)
    timed = [print_case(options, library, *case) for case in cases]
    sys.exit(0 if any(timed) else 1)


def print_case(options, library, problem, op, fields, run):
    record = {
        "schema": 1,
        "kind": "case",
        "provider": provider(library, options.device),
        "problem": problem.descriptor,
        "op": op,
        "dtype": options.dtype,
        "device": device_name(options.device),
        "flops": problem.flops,
        "fill": "uniform01",
        "seed": SEED,
        "verdict": "none",
        **fields,
    }
    try:
        record.update(run())
        record["gflops"] = problem.flops / record["time_ms"]["median"] / 1e6
    except RuntimeError as error:
        record.update(verdict="error", time_ms=None, message=str(error).splitlines()[0])
        print(f"{problem.descriptor} {op}: {record['message']}", file=sys.stderr)
    print_record(record)
    return record["time_ms"] is not None


def measure(call, options):
    """Milliseconds a call: back-to-back calls fill a sample, on a GPU replayed from a CUDA graph."""
    clock = _cuda_ms if options.device == "cuda" else _host_ms

    def loop(count):
        for _ in range(count):
            call()

    loop(3)
    repeats = min(200, max(1, int(FILL_MS / clock(lambda: loop(5)) * 5)))
    run, graph = (lambda: loop(repeats)), None
    if options.device == "cuda":
        graph = _graph(run)
        run = run if graph is None else graph.replay
        end = time.monotonic() + options.warm_up
        while time.monotonic() < end:
            run()
            torch.cuda.synchronize()
    samples = [clock(run) / repeats for _ in range(options.runs)]
    median = statistics.median(samples)
    return {
        "median": median,
        "min": min(samples),
        "mad": statistics.median(abs(sample - median) for sample in samples),
        "samples": samples,
        "repeats": repeats,
        "clock": "wall" if options.device == "cpu" else
        "CUDA events" if graph is None else "CUDA events, calls of a graph",
    }


def _host_ms(run):
    start = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - start)


def _cuda_ms(run):
    start, end = torch.cuda.Event(True), torch.cuda.Event(True)
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def _graph(run):
    """The calls as a CUDA graph, so that Python's own time does not count; None where they cannot be captured."""
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        return graph
    except RuntimeError as error:
        print(f"no CUDA graph: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def accuracy(got, reference, total):
    """Errors against float64, which zeros of the reference are left out of; `total` counts the whole result."""
    error = (got.double() - reference).abs()
    there = reference != 0
    relative = error[there] / reference[there].abs()
    return {
        "mare": relative.mean().item(),
        "max_rel": relative.max().item(),
        "rel_l2": (error.norm() / reference.norm()).item(),
        "checked": reference.numel(),
        "total": total,
    }
