# A language model in llama.cpp: a file of random weights (8 bits, Q8_0) in the proportions of TinyLlama, as large as is asked for.
# Prefill works on a prompt at once, decode makes one token after the other. Either its own llama-bench runs, or Python's llama_cpp.
import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

variant, size, threads, trials, seed, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[5]), int(sys.argv[6]), int(sys.argv[8]), sys.argv[9]
bench = shutil.which("llama-bench")
if not bench:
    try:
        import llama_cpp
    except ImportError:
        print("lacks llama.cpp is not installed: pip install llama-cpp-python, or put llama-bench into PATH", flush=True)
        sys.exit(0)
PROMPT, TOKENS, VOCABULARY = 512, 64, 32000
model = os.path.join(folder, "model.gguf")
F32, Q8 = 0, 8


def parameters(wide, layers):
    return layers * (wide * wide * 2 + wide * wide // 8 * 2 + wide * (wide * 11 // 4) * 3) + 2 * VOCABULARY * wide


# The widest whose sixteen layers fit, of whole heads of 64 numbers, eight of which share their keys.
wide = max([w for w in (512, 1024, 2048, 4096) if parameters(w, 16) * 34 // 32 <= size] or [512])
layer = parameters(wide, 1) - parameters(wide, 0)
layers = max((size * 32 // 34 - parameters(wide, 0)) // layer, 1)
feed = wide * 11 // 4


def write():
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
    bytes_of = [f"<0x{n:02X}>" for n in range(256)]
    tokens = ["<unk>", "<s>", "</s>"] + bytes_of + [f"w{n}" for n in range(VOCABULARY - 259)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259)
    number = lambda n: struct.pack("<II", 4, n)
    array = lambda kind, items: struct.pack("<IIQ", 9, kind, VOCABULARY) + b"".join(items)
    keys = {
        "general.architecture": struct.pack("<I", 8) + text("llama"), "general.name": struct.pack("<I", 8) + text("random"),
        "general.file_type": number(7), "llama.context_length": number(2048), "llama.embedding_length": number(wide),
        "llama.block_count": number(layers), "llama.feed_forward_length": number(feed), "llama.attention.head_count": number(wide // 64),
        "llama.attention.head_count_kv": number(wide // 512), "llama.rope.dimension_count": number(64), "llama.vocab_size": number(VOCABULARY),
        "llama.attention.layer_norm_rms_epsilon": struct.pack("<If", 6, 1e-5), "tokenizer.ggml.model": struct.pack("<I", 8) + text("llama"),
        "tokenizer.ggml.tokens": array(8, map(text, tokens)), "tokenizer.ggml.scores": array(6, [struct.pack("<f", 0.0)] * VOCABULARY),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", kind) for kind in kinds]), "tokenizer.ggml.unknown_token_id": number(0),
        "tokenizer.ggml.bos_token_id": number(1), "tokenizer.ggml.eos_token_id": number(2),
    }
    # The first number of a shape is that of columns.
    tensors = [("token_embd.weight", (wide, VOCABULARY), Q8), ("output_norm.weight", (wide,), F32), ("output.weight", (wide, VOCABULARY), Q8)]
    for n in range(layers):
        parts = {"attn_q": wide, "attn_k": wide // 8, "attn_v": wide // 8, "attn_output": wide, "ffn_gate": feed, "ffn_up": feed}
        tensors += [(f"blk.{n}.{name}.weight", (wide, rows), Q8) for name, rows in parts.items()]
        tensors += [(f"blk.{n}.ffn_down.weight", (feed, wide), Q8)]
        tensors += [(f"blk.{n}.{name}.weight", (wide,), F32) for name in ("attn_norm", "ffn_norm")]
    drawn = random.Random(seed)
    # Blocks of 32 weights and their scale, a pool of which is written again and again from random places.
    scale = struct.pack("<e", 1 / (73 * wide**0.5))
    pool = b"".join(scale + drawn.randbytes(32) for _ in range(1 << 17))
    with open(model, "wb") as to:
        to.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)))
        for key, value in keys.items():
            to.write(text(key) + value)
        at = 0
        sizes = []
        for name, shape, kind in tensors:
            to.write(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, at))
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            sizes.append(count * 4 if kind == F32 else count // 32 * 34)
            at += -(-sizes[-1] // 32) * 32
        to.write(bytes(-to.tell() % 32))
        for (_, shape, kind), length in zip(tensors, sizes):
            if kind == F32:
                to.write(struct.pack("<f", 1.0) * shape[0])
            left = length if kind == Q8 else 0
            while left:
                part = min(left, len(pool) - 34 * drawn.randrange(1 << 16))
                to.write(pool[len(pool) - part:])
                left -= part
            to.write(bytes(-length % 32))


def told(name, took, done, check, times=()):
    times = sorted(times)
    at = lambda share: times[min(int(len(times) * share), len(times) - 1)]
    spread = f" mean={sum(times) / len(times)} p50={at(0.5)}" if times else ""
    print("figure", name, took, 0, check, f"per_s={done / took * 1e9} unit=tokens" + spread, flush=True)


write()
shape = f"{parameters(wide, layers) / 1e6:.0f} million weights of 8 bits, {layers} layers of {wide}"
if bench:
    print("version llama-bench,", shape, flush=True)
    what = ["-p", str(PROMPT), "-n", "0"] if variant == "prefill" else ["-p", "0", "-n", str(TOKENS)]
    libc = ctypes.CDLL(None)
    # Weights are read into memory of the process and not mapped, since the page cache would hold them where they were written.
    words = [bench, "-m", model, *what, "-r", str(trials), "-t", str(threads), "-mmp", "0", "-o", "json"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL, 0, 0, 0))
    signal.signal(signal.SIGTERM, lambda *_: (run.kill(), os._exit(1)))
    whole = os.path.getsize(model)
    while run.poll() is None and int(open(f"/proc/{run.pid}/statm").read().split()[1] or 0) * 4096 < whole * 0.9:
        time.sleep(0.02)
    print("look", flush=True)
    sys.stdin.readline()
    out, err = run.communicate()
    if run.returncode:
        raise RuntimeError(f"llama-bench ended ({run.returncode}): " + (err.strip().splitlines() or ["no message"])[-1])
    for n, took in enumerate(json.loads(out)[0]["samples_ns"]):
        told(f"trial_{n + 1}", took, PROMPT if variant == "prefill" else TOKENS, "-")
else:
    print("version llama_cpp", llama_cpp.__version__ + ",", shape, flush=True)
    loaded = llama_cpp.Llama(model, n_ctx=PROMPT + TOKENS + 16, n_batch=PROMPT, n_threads=threads, n_threads_batch=threads, use_mmap=False, verbose=False)
    # The page cache needs its pages no more.
    os.remove(model)
    prompt = [3 + random.Random(seed + n).randrange(VOCABULARY - 3) for n in range(PROMPT)]
    # Not counted: what is read and made at the first use.
    loaded.eval(prompt[:16])
    print("look", flush=True)
    sys.stdin.readline()
    for n in range(1, trials + 1):
        loaded.reset()
        if variant == "prefill":
            began = time.perf_counter_ns()
            loaded.eval(prompt)
            took = time.perf_counter_ns() - began
            told(f"trial_{n}", took, PROMPT, loaded.sample(temp=0))
            continue
        loaded.eval(prompt[:16])
        made, times, at = [], [], time.perf_counter_ns()
        for _ in range(TOKENS):
            made.append(loaded.sample(temp=0))
            loaded.eval(made[-1:])
            at, last = time.perf_counter_ns(), at
            times.append(at - last)
        # The most likely tokens, the same in all places.
        told(f"trial_{n}", sum(times), TOKENS, hashlib.sha256(repr(made).encode()).hexdigest()[:16], times)
