"""A language model of some 100 kB with random weights: real for the server, useless for people."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

_WIDTH, _INNER, _HEADS, _LAYERS = 32, 64, 2, 1
_CHAT = (
    "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}<s>assistant: "
)


def write_tiny_gguf(path: Path, *, context: int = 4096) -> Path:
    """Write the model; its vocabulary is the 256 bytes and three control tokens."""
    rng = np.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([*kinds, *[gguf.TokenType.BYTE] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(_CHAT)

    def add(name: str, *shape: int) -> None:
        data = rng.normal(0, 0.2, shape) if len(shape) > 1 else np.ones(shape)
        writer.add_tensor(f"{name}.weight", data.astype(np.float32))

    add("token_embd", len(tokens), _WIDTH)
    add("output_norm", _WIDTH)
    add("output", len(tokens), _WIDTH)
    for layer in range(_LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            add(f"blk.{layer}.{name}", _WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}", _WIDTH, _WIDTH)
        for name in ("ffn_gate", "ffn_up"):
            add(f"blk.{layer}.{name}", _INNER, _WIDTH)
        add(f"blk.{layer}.ffn_down", _WIDTH, _INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
