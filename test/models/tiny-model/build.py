"""Writes the model in this folder: a decoder of two layers with random weights, which says words of no language.

    pip install onnx numpy
    python build.py

There are two graphs with the same weights. That of `model.onnx` is like those that are exported from PyTorch: the cache grows
by Concat, so it cannot be shared, and runs on transformers.js. That of `model_fp16.onnx` (which is 32-bit too; the name makes
it another choice of `--dtype`) has GroupQueryAttention, which can append to a cache in place.
"""
import json, pathlib
import numpy as np
import onnx
from onnx import TensorProto as TP, helper as oh, numpy_helper as nh

HERE = pathlib.Path(__file__).parent
LAYERS, HEADS, DIM, WIDTH, POSITIONS = 2, 2, 16, 32, 512
SPECIAL = ["<|start|>", "<|end|>"]
# Bytes as GPT-2 writes them.
printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = [b for b in range(256) if b not in printable]
alphabet = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
vocab = {alphabet[b]: b for b in range(256)} | {word: 256 + i for i, word in enumerate(SPECIAL)}
END = vocab["<|end|>"]

def build(name, shares_cache):
    rng = np.random.default_rng(7)
    nodes, inits = [], []

    def const(name, value, dtype):
        inits.append(nh.from_array(np.asarray(value, dtype), name))
        return name

    def op(kind, ins, out, **attrs):
        outs = [out] if isinstance(out, str) else out
        nodes.append(oh.make_node(kind, ins, outs, **attrs))
        return outs[0]

    def weight(name, *shape):
        return const(name, rng.normal(0, 0.3, shape), np.float32)

    def cache(name, rows):
        return oh.make_tensor_value_info(name, TP.FLOAT, ["batch_size", HEADS, rows, DIM])

    x = op("Add", [
        op("Gather", [weight("embed", len(vocab), WIDTH), "input_ids"], "embedded"),
        op("Gather", [weight("position", POSITIONS, WIDTH), "position_ids"], "placed")], "x0")
    total = op("Gather", [op("Shape", ["attention_mask"], "mask_shape"), const("one_index", 1, np.int64)], "total")
    if shares_cache:
        length = op("ReduceSum", ["attention_mask", const("axis1", [1], np.int64)], "length", keepdims=0)
        before = op("Sub", [length, const("one", 1, np.int64)], "before")
        seqlens = op("Cast", [before], "seqlens", to=TP.INT32)
        total = op("Cast", [total], "total32", to=TP.INT32)
    else:
        columns = op("Range", [const("zero", 0, np.int64), total, const("one", 1, np.int64)], "columns")
        rows = op("Unsqueeze", ["position_ids", const("axis1_2", [1, 3], np.int64)], "rows")
        seen = op("LessOrEqual", [columns, rows], "seen")
        mask = op("Where", [seen, const("open", 0, np.float32), const("shut", -1e9, np.float32)], "causal")

    cache_in, cache_out = [], []
    for layer in range(LAYERS):
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        cache_in += [cache(name, "past_sequence_length") for name in past]
        cache_out += [cache(name, "total_sequence_length") for name in present]
        flat = [op("MatMul", [x, weight(f"{part}{layer}", WIDTH, HEADS * DIM)], f"flat_{part}{layer}") for part in "qkv"]
        if shares_cache:
            joined = op("GroupQueryAttention", [*flat, *past, seqlens, total], [f"joined{layer}", *present],
                        domain="com.microsoft", num_heads=HEADS, kv_num_heads=HEADS, scale=1.0)
        else:
            heads = []
            for part, one in zip("qkv", flat):
                split = op("Reshape", [one, const(f"split_{part}{layer}", [0, 0, HEADS, DIM], np.int64)], f"split_of_{part}{layer}")
                heads.append(op("Transpose", [split], f"heads_{part}{layer}", perm=[0, 2, 1, 3]))
            keys, values = (op("Concat", [past[i], heads[i + 1]], present[i], axis=2) for i in (0, 1))
            scores = op("MatMul", [heads[0], op("Transpose", [keys], f"turned{layer}", perm=[0, 1, 3, 2])], f"scores{layer}")
            soft = op("Softmax", [op("Add", [scores, mask], f"masked{layer}")], f"soft{layer}", axis=-1)
            back = op("Transpose", [op("MatMul", [soft, values], f"mixed{layer}")], f"back{layer}", perm=[0, 2, 1, 3])
            joined = op("Reshape", [back, const(f"join{layer}", [0, 0, HEADS * DIM], np.int64)], f"joined{layer}")
        x = op("Add", [x, op("MatMul", [joined, weight(f"o{layer}", HEADS * DIM, WIDTH)], f"out{layer}")], f"attended{layer}")
        wide = op("MatMul", [x, weight(f"mlp{layer}", WIDTH, WIDTH)], f"wide{layer}")
        x = op("Add", [x, op("Tanh", [wide], f"bent{layer}")], f"x{layer + 1}")

    # It says small letters, spaces, and now and then that it is done.
    bias = np.full(len(vocab), -1000.0)
    bias[[ord(c) for c in "abcdefghijklmnopqrstuvwxyz"]] = 0
    bias[vocab["Ġ"]], bias[END] = 1.5, -2
    op("Add", [op("MatMul", [x, weight("head", WIDTH, len(vocab))], "raw"), const("bias", bias, np.float32)], "logits")

    ids = lambda name, length: oh.make_tensor_value_info(name, TP.INT64, ["batch_size", length])
    inputs = [ids("input_ids", "sequence_length"), ids("attention_mask", "total_sequence_length"), ids("position_ids", "sequence_length")]
    logits = oh.make_tensor_value_info("logits", TP.FLOAT, ["batch_size", "sequence_length", len(vocab)])
    graph = oh.make_graph(nodes, "tiny", [*inputs, *cache_in], [logits, *cache_out], inits)
    opsets = [oh.make_opsetid("", 17), oh.make_opsetid("com.microsoft", 1)]
    model = oh.make_model(graph, opset_imports=opsets, ir_version=8)
    if not shares_cache: onnx.checker.check_model(model)
    (HERE / "onnx").mkdir(exist_ok=True)
    onnx.save(model, HERE / "onnx" / name)


build("model.onnx", False)
build("model_fp16.onnx", True)


def write(name, value):
    (HERE / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


write("config.json", {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": DIM,
    "max_position_embeddings": POSITIONS, "vocab_size": len(vocab), "eos_token_id": END})
write("generation_config.json", {"eos_token_id": [END], "do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9})
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
write("tokenizer.json", {"version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": vocab[word], "content": word, "special": True, "single_word": False, "lstrip": False,
                      "rstrip": False, "normalized": False} for word in SPECIAL],
    "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
              "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}})
write("tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|end|>", "model_max_length": POSITIONS,
    "chat_template": "{% for m in messages %}{% if m['role'] == 'system' and not loop.first %}"
    "{{ raise_exception('system comes first') }}{% endif %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"})
(HERE / "README.md").write_text("---\nlicense: apache-2.0\n---\n\nA model for tests, with random weights (`build.py`).\n")
