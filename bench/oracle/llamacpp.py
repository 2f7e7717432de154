"""What a model loses by llama.cpp's types, with and without an importance matrix: the peers of bench/schemes.ts.

Needs torch, transformers, gguf and llama-cpp-python. The float model is a Llama as `halftone convert` writes it; windows
and calibration sequences are JSON arrays of arrays of token ids, so that no tokenizer comes between. The embedding and
the output head stay float, as in bench/schemes.ts, or with --whole take what llama.cpp gives them, for whole files.
Every result is a line of --results and is not measured again.

python bench/oracle/llamacpp.py --model DIR --windows IDS.json --calibration IDS.json --results FILE [--types Q4_0,...]
"""

import argparse
import ctypes
import json
import math
import os
import tempfile

import gguf
import llama_cpp
import numpy as np
import torch
from transformers import LlamaForCausalLM

TYPES = "Q8_0,Q4_K_M,Q4_K_S,Q4_0,IQ4_XS,Q3_K_M,IQ3_M,Q3_K_S,IQ3_XXS,Q2_K,IQ2_M,IQ2_XXS"
# llama.cpp refuses these without an importance matrix.
NEED_MATRIX = {"IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M"}
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def interleaved(weight, heads):
    """Rows of a query or key weight in llama.cpp's order: it rotates neighbours, Hugging Face halves."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(model, path):
    c = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_vocab_size(c.vocab_size)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_freq_base(model.config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(c.hidden_size // c.num_attention_heads)
    writer.add_tokenizer_model("no_vocab")
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    writer.add_tensor("token_embd.weight", state["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", state["model.norm.weight"])
    writer.add_tensor("output.weight", state["lm_head.weight"])
    for i in range(c.num_hidden_layers):
        layer = f"model.layers.{i}."
        writer.add_tensor(f"blk.{i}.attn_norm.weight", state[f"{layer}input_layernorm.weight"])
        writer.add_tensor(f"blk.{i}.ffn_norm.weight", state[f"{layer}post_attention_layernorm.weight"])
        for ours, theirs in NAMES.items():
            weight = state[f"{layer}{ours}.weight"]
            if theirs == "attn_q":
                weight = interleaved(weight, c.num_attention_heads)
            if theirs == "attn_k":
                weight = interleaved(weight, c.num_key_value_heads)
            writer.add_tensor(f"blk.{i}.{theirs}.weight", np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def importance(model, sequences):
    """Mean square of every input channel of every linear layer, by llama.cpp's tensor name."""
    sums, hooks = {}, []
    for i, layer in enumerate(model.model.layers):
        for ours, theirs in NAMES.items():
            key = f"blk.{i}.{theirs}.weight"

            def add(_, inputs, key=key):
                x = inputs[0].reshape(-1, inputs[0].shape[-1])
                sums[key] = sums.get(key, 0) + x.pow(2).sum(0)

            hooks.append(layer.get_submodule(ours).register_forward_pre_hook(add))
    for ids in sequences:
        model.model(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    tokens = sum(map(len, sequences))
    return {key: (value / tokens).numpy().astype(np.float32) for key, value in sums.items()}


def quantize(source, target, kind, matrix, threads, whole):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.nthread = threads
    if not whole:
        params.output_tensor_type = params.token_embedding_type = gguf.GGMLQuantizationType.F32.value
    if matrix:
        array = (llama_cpp.llama_model_imatrix_data * (len(matrix) + 1))()
        for entry, (name, values) in zip(array, matrix.items()):
            entry.name = name.encode()
            entry.data = values.ctypes.data_as(type(entry.data))
            entry.size = values.size
        params.imatrix = ctypes.cast(array, type(params.imatrix))
    if llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)) != 0:
        raise RuntimeError(f"llama.cpp could not quantize to {kind}")


class Scorer:
    """Log probabilities of a GGUF model over windows."""

    def __init__(self, path, context, threads):
        parameters = llama_cpp.llama_model_default_params()
        parameters.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), parameters)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = context
        settings.n_threads = settings.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        self.batch = llama_cpp.llama_batch_init(context, 0, 1)
        self.size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def logits(self, ids):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        self.batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            self.batch.token[i], self.batch.pos[i], self.batch.logits[i] = token, i, True
            self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, 0
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama.cpp could not decode")
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits(self.context), (len(ids), self.size)).copy()

    def close(self):
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)


def log_softmax(logits):
    return torch.log_softmax(torch.as_tensor(logits), -1)


def compare(scorer, model, windows):
    loss, divergences, agreed, count = 0.0, [], 0, 0
    for ids in windows:
        q = log_softmax(scorer.logits(ids[:-1]))
        p = log_softmax(model(torch.tensor([ids[:-1]])).logits[0])
        following = torch.tensor(ids[1:])[:, None]
        loss -= q.gather(-1, following).double().sum().item()
        divergences.append((p.exp() * (p - q)).double().sum(-1).numpy())
        agreed += (p.argmax(-1) == q.argmax(-1)).sum().item()
        count += len(ids) - 1
    divergence = np.concatenate(divergences)
    return {
        "perplexity": math.exp(loss / count),
        "meanKlDivergence": float(divergence.mean()),
        "klDivergence99": float(np.quantile(divergence, 0.99)),
        "topAgreement": agreed / count,
        "tokens": count,
    }


def linear_bits(path):
    names = tuple(NAMES.values())
    tensors = [t for t in gguf.GGUFReader(path).tensors if t.name.split(".")[-2] in names]
    return 8 * sum(int(t.n_bytes) for t in tensors) / sum(int(t.n_elements) for t in tensors)


def main():
    parser = argparse.ArgumentParser()
    for name in ("model", "windows", "calibration", "results"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--types", default=TYPES)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--whole", action="store_true")
    flags = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(flags.threads)
    model = LlamaForCausalLM.from_pretrained(flags.model, dtype=torch.float32).eval()
    windows = json.load(open(flags.windows))
    known = [json.loads(line) for line in open(flags.results)] if os.path.exists(flags.results) else []
    done = {(r["model"], r["type"], r["matrix"]) for r in known}
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/float.gguf", f"{folder}/quantized.gguf"
        write_gguf(model, source)
        matrix = importance(model, json.load(open(flags.calibration)))
        jobs = [("ALL_F32", False)] + [(kind, m) for kind in flags.types.split(",") for m in (False, True)]
        for kind, with_matrix in jobs:
            if (flags.model, kind, with_matrix) in done or (kind in NEED_MATRIX and not with_matrix):
                continue
            path = source
            if kind != "ALL_F32":
                path = target
                quantize(source, target, kind, with_matrix and matrix, flags.threads, flags.whole)
            scorer = Scorer(path, len(windows[0]), flags.threads)
            result = {
                "model": flags.model,
                "type": kind,
                "matrix": with_matrix,
                "bitsPerWeight": linear_bits(path),
                "bytes": os.path.getsize(path),
                **compare(scorer, model, windows),
            }
            scorer.close()
            with open(flags.results, "a") as file:
                file.write(json.dumps(result) + "\n")


main()
