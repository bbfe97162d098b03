"""Writes a random Llama with a tokenizer into a folder: FOLDER [HIDDEN [LAYERS]].

The usual one has 1.6 million parameters; 2048 and 8 make one of 470 million, 0.9 GB.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

out = Path(sys.argv[1])
hidden, layers = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (256, 2)
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, **{c: i + 3 for i, c in enumerate(alphabet)}}
tok = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>"))
tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tok.decoder = decoders.ByteLevel()
PreTrainedTokenizerFast(
    tokenizer_object=tok, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
).save_pretrained(out)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=512,
    hidden_size=hidden,
    intermediate_size=4 * hidden if hidden > 256 else 512,
    num_hidden_layers=layers,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=2048,
    bos_token_id=1,
    eos_token_id=2,
    torch_dtype="float16",
)
LlamaForCausalLM(config).half().save_pretrained(out)
